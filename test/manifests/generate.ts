import fc from "fast-check";
import { podSchema } from "../../lib/manifests/pod-schema.ts";
import { marks, ordinaryManifests, someLine } from "./ordinary.ts";
import type { GeneratedFile } from "./referee.ts";
import { snippets } from "./snippets.ts";

/** A value before it is spelled in YAML or JSON; objects are lists of pairs, so that keys can repeat. */
type Tree = string | number | boolean | null | Raw | readonly Tree[] | Pairs;
/** Text that is put down as it is. */
interface Raw {
  readonly raw: string;
}
interface Pairs {
  readonly pairs: readonly (readonly [string, Tree])[];
}

const raw = (text: string): Raw => ({ raw: text });
const pairs = (...list: (readonly [string, Tree])[]): Pairs => ({ pairs: list });

/** Plain scalars that YAML 1.1, YAML 1.2, JSON and Go read in different ways. */
export const nastyScalars: readonly string[] = [
  ..."y n yes no on off true false True FALSE null Null ~ NULL".split(" "),
  ..."0 00 01 08 09 010 0o17 0O7 0x1f 0X1F 0xg 0b11 0B1 -0b11 +0b1 1_000 _1 1_ 1__0 +1 -1 +0 -0 1e3 1E3 1e+3 1e-3 .5 5. 1.5 -.5 +.5 1.0 1.".split(
    " ",
  ),
  ..."1e400 1e-400 .inf -.inf +.inf .Inf .NaN .nan . .. ... - -- --- + 190:20:30 12:30 1:2:3.4 0.1e1 .1_0 ._1 1._5 0x_1 0_7 0x1_f".split(
    " ",
  ),
  ..."9223372036854775807 9223372036854775808 18446744073709551615 18446744073709551616 -9223372036854775809 2147483647 2147483648".split(
    " ",
  ),
  ..."2001-01-01 2001-1-1 2001-01-01T00:00:00Z 2001-13-01 0x1p4 1i Infinity NaN inf nan 1,000 1k 1Ki 100m 1e3k".split(
    " ",
  ),
  "2001-01-01 10:00:00",
  "=",
  "<<",
  "!",
  "!!str 1",
  "!!int 1",
  "!!int a",
  "!!float 1",
  "!!bool yes",
  '!!bool "yes"',
  "!!null ''",
  "!!null x",
  "!!binary YWJj",
  "!!binary gIE=",
  "!!binary a",
  "!!timestamp 2001-01-01",
  "!!timestamp x",
  "!!str",
  "!!foo x",
  "!foo x",
  "! 1",
  "!<tag:yaml.org,2002:str> 1",
  "!<x> 1",
  "!e!x 1",
  "a:b",
  "a: b",
  "a :b",
  "a#b",
  "a #b",
  "a  b",
  "a\tb",
  "a\t#b",
  "'a'",
  "'it''s'",
  "'a\n  b'",
  "'a\n\n  b'",
  '"a\\x62\\u0063"',
  '"a\\\n  b"',
  '"a\\/b"',
  '"\\ud800"',
  '"\\U0001F600"',
  '"a\\0b"',
  '"a\\eb"',
  '"a\n b"',
  '"a\nb"',
  "'a\nb'",
  "a\n  b",
  "a\n\n  b",
  "a\nb",
  "|\n  x",
  "|-\n  x",
  ">-\n  x\n  y",
  ">\n x\n\n  y\n z",
  "|2\n  x",
  "|+\n  x\n\n",
  "|0\n x",
  "|-1\n  x",
  "|9\n  x",
  "| # c\n  x",
  "|x\n  x",
  "|\n\tx",
  "|\n \n  x",
  "&a x",
  "&a",
  "*a",
  "*none",
  "&a *a",
  "&a.b x",
  "&a &b x",
  "[]",
  "{}",
  "[a]",
  "[a,]",
  "[,]",
  "[a,,b]",
  "[a b]",
  "[a: b]",
  "[? a : b]",
  "[?]",
  "[a?b]",
  "{a}",
  "{a: b}",
  "{a:b}",
  "{a: b,}",
  "{a, b: c}",
  "{? a}",
  "{a: b: c}",
  "{:a}",
  '{"a":b}',
  "{'a':b}",
  "[a]: b",
  "? a",
  ": a",
  "- a",
  "-a",
  "?a",
  ":a",
  "@a",
  "`a",
  "%a",
  ",a",
  "]",
  "}",
  "[",
  "{",
  "a]",
  "a}",
  "a, b",
  "#a",
  "é",
  "\u2028",
  "a\u2028  b",
  "a\u0085  b",
  "\u00a0",
  "\ufeffa",
  "😀",
  "\t",
  "\ta",
  "a\t",
  "",
];

const names = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom("etcd", "a", "b", "kube-proxy", "x.y", "n1") },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      "A",
      "a_b",
      "-a",
      "a-",
      "a.",
      "a..b",
      "",
      " ",
      "a b",
      "é",
      "x".repeat(253),
      "x".repeat(248),
      "x".repeat(249),
      "1",
      "0x1",
    ),
  },
);
const nasty = fc.constantFrom(...nastyScalars).map(raw);

/** Texts that are right for one field and wrong for the next. */
const words: readonly string[] = [
  ..."a b c x-y A a_b a.b 1 0 -1 a/b example.com/a kubernetes.io/a k8s.io/a /a ../a a/../b ..a . .. ~ a=b HTTP HTTPS http TCP UDP SCTP Always Never OnFailure IfNotPresent".split(
    " ",
  ),
  ..."ClusterFirst ClusterFirstWithHostNet Default None File FallbackToLogsOnError Bidirectional HostToContainer Enabled Disabled IfPossible In NotIn Exists DoesNotExist Gt Lt Equal NoExecute NoSchedule".split(
    " ",
  ),
  ..."PreferNoSchedule DoNotSchedule ScheduleAnyway Honor Ignore Localhost RuntimeDefault Unconfined Unmasked Merge Strict OnRootMismatch Recursive MountOption linux windows SIGTERM SIGRTMIN+1".split(
    " ",
  ),
  ..."DirectoryOrCreate Directory Socket CharDevice BlockDevice Managed Shared Dedicated ReadOnly ReadWrite 10.0.0.1 010.0.0.1 ::1 ::ffff:1.2.3.4 fe80::1%eth0 1.2.3 1.2.3.4.5 2001:db8::1 ::1.2.3.4 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7::".split(
    " ",
  ),
  ..."metadata.name metadata.uid metadata.labels spec.nodeName spec.host status.podIP status.phase limits.cpu requests.memory limits.hugepages-2Mi limits.foo NotRequired RestartContainer Restart RestartAllContainers".split(
    " ",
  ),
  ..."cpu memory ephemeral-storage hugepages-2Mi hugepages-x example.com/gpu requests.example.com/x pods net.ipv4.ip_forward kernel.shmmax net/ipv4/a.b kernel.sem Plaintext TLS HTTP1 HTTP2 runtime/default localhost/a docker/default".split(
    " ",
  ),
  ..."iqn.2015-02.example:a iqn.x eui.0123456789abcdef naa.1 https://a /subscriptions/a h:1 h:1,g:2 h [::1]:2 noexec nodev nosuid v1 v1beta1 apps/v1 a/b/c orphan foregroundDeletion Apply Update FieldsV1 CAP_SYS_ADMIN".split(
    " ",
  ),
  "metadata.labels['a']",
  "metadata.annotations['A/b']",
  "metadata.labels['']",
  "metadata.name['a']",
  " a",
  "a ",
  "a\u0085",
  "\ufeffa",
  "2006-01-02T15:04:05Z",
  "2006-01-02T5:04:05.1+01:00",
  "2006-02-30T15:04:05Z",
  "2006-01-02",
  "http",
  "port-name",
  "a--b",
  "x".repeat(16),
  "x".repeat(64),
  "x".repeat(254),
  "DOMAIN\\user",
  "a\\b\\c",
  "",
];
const integers = [
  0, 1, -1, 2, 10, 80, 255, 256, 443, 511, 512, 777, 1023, 65535, 65536, 2147483647, 2147483648, -2147483649,
  4294967296, 30, 3600,
];
const quantitiesText =
  "0 1 2 -1 100m 1.5 0.1 1e3 1E3 1Ki 1Mi 2Mi 4Mi 3Mi 1Gi 1.5Gi .5 5. + - k Mi Pi 1m 1n 1.1n 1u 10e-1 1000m 1000 1024 1024Ki 01 +1 1e 1ee1 1K 1_0 0x1 1e-9 -0 1e4294967296 ' 1' 1k 1.0 1. 1.000 1e0 0.5Ki".split(
    " ",
  );

/** The fields of each struct of the schema. */
const structs = new Map(
  podSchema
    .trim()
    .split("\n")
    .map((line) => {
      const [name = "", ...fields] = line.split(" ");
      return [name, fields.map((field) => field.split(/:(.*)/s).slice(0, 2) as [string, string])] as const;
    }),
);

/** A value of any type: what a field of another type would hold. */
const wrong: fc.Arbitrary<Tree> = fc.oneof(
  fc.constantFrom<Tree>(
    null,
    true,
    false,
    1,
    1.5,
    "a",
    "",
    [],
    pairs(),
    [1],
    ["a"],
    [null],
    pairs(["a", "b"]),
    pairs(["a", null]),
  ),
  nasty,
);

/** A value for a type of the schema: mostly of that type, small, and now and then nonsense. */
function typed(type: string, depth: number): fc.Arbitrary<Tree> {
  const right = ((): fc.Arbitrary<Tree> => {
    if (type.startsWith("*")) return typed(type.slice(1), depth);
    if (type.startsWith("[]")) return fc.array(typed(type.slice(2), depth - 1), { maxLength: 3 });
    if (type.startsWith("{}")) {
      return fc
        .array(fc.tuple(fc.constantFrom(...words), typed(type.slice(2), depth - 1)), { maxLength: 3 })
        .map((list) => pairs(...list));
    }
    switch (type) {
      case "string":
        return fc.constantFrom(...words);
      case "bool":
        return fc.boolean();
      case "int32":
      case "int64":
        return fc.constantFrom(...integers);
      case "@Quantity":
        return fc.constantFrom<Tree>(...quantitiesText.map(raw), 1, 0, 2, 1.5, "100m");
      case "@IntOrString":
        return fc.constantFrom<Tree>(80, 0, 65536, "http", "80", "", 1.5);
      case "@Time":
        return fc.constantFrom(...words);
      default: {
        const fields = structs.get(type);
        if (fields === undefined || depth <= 0) return fc.constant(pairs());
        return fc
          .subarray(fields, { maxLength: Math.min(4, fields.length) })
          .chain((chosen) =>
            fc.tuple(
              ...chosen.map(([field, of]) => typed(of, depth - 1).map((value): [string, Tree] => [field, value])),
            ),
          )
          .map((list) => pairs(...(list as [string, Tree][])));
      }
    }
  })();
  return fc.oneof({ weight: 24, arbitrary: right }, { weight: 1, arbitrary: wrong });
}

/** Good pods in some variety, for the rest to spoil. */
const soundContainer = fc.record({
  name: fc.constantFrom("main", "c", "c1"),
  image: fc.constantFrom("registry.test/a:1", "busybox", "r.test/x@sha256:0"),
  extra: fc.array(
    fc.constantFrom<readonly [string, Tree]>(
      ["ports", [pairs(["containerPort", 80])]],
      ["ports", [pairs(["containerPort", 80], ["hostPort", 8080])]],
      ["command", ["sh", "-c", "true"]],
      ["env", [pairs(["name", "A"], ["value", "b"])]],
      ["env", [pairs(["name", "A"], ["valueFrom", pairs(["fieldRef", pairs(["fieldPath", "metadata.name"])])])]],
      ["volumeMounts", [pairs(["name", "v"], ["mountPath", "/v"])]],
      [
        "resources",
        pairs(["requests", pairs(["cpu", "100m"], ["memory", "64Mi"])], ["limits", pairs(["memory", "128Mi"])]),
      ],
      ["livenessProbe", pairs(["httpGet", pairs(["path", "/"], ["port", 8080])])],
      ["readinessProbe", pairs(["tcpSocket", pairs(["port", 8080])])],
      ["securityContext", pairs(["privileged", true])],
      ["imagePullPolicy", "IfNotPresent"],
    ),
    { maxLength: 3 },
  ),
});

const pod = fc
  .record({
    name: names,
    namespace: fc.option(
      fc.constantFrom(
        "kube-system",
        "kube-system",
        "kube-system",
        "default",
        "default",
        "default",
        "",
        "",
        "Bad",
        "a.b",
      ),
      { nil: undefined, freq: 2 },
    ),
    uid: fc.option(fc.constantFrom("u1", "0123456789abcdef0123456789abcdef", ""), { nil: undefined, freq: 6 }),
    containers: fc.array(soundContainer, { minLength: 1, maxLength: 2 }),
    extra: fc.array(
      fc.constantFrom<readonly [string, Tree]>(
        ["hostNetwork", true],
        ["volumes", [pairs(["name", "v"], ["hostPath", pairs(["path", "/etc/v"])])]],
        ["volumes", [pairs(["name", "v"], ["emptyDir", pairs()])]],
        ["volumes", [pairs(["name", "v"])]],
        ["priorityClassName", "system-node-critical"],
        ["tolerations", [pairs(["operator", "Exists"])]],
        ["securityContext", pairs(["seccompProfile", pairs(["type", "RuntimeDefault"])])],
        ["serviceAccountName", ""],
        ["os", pairs(["name", "linux"])],
        ["restartPolicy", "Never"],
      ),
      { maxLength: 3 },
    ),
  })
  .map(({ name, namespace, uid, containers, extra }) =>
    pairs(
      ["apiVersion", "v1"],
      ["kind", "Pod"],
      [
        "metadata",
        pairs(
          ["name", name],
          ...(namespace === undefined ? [] : [["namespace", namespace] as const]),
          ...(uid === undefined ? [] : [["uid", uid] as const]),
        ),
      ],
      [
        "spec",
        pairs(...extra, [
          "containers",
          containers.map((one, i) =>
            pairs(["name", i === 0 ? one.name : `${one.name}x`], ["image", one.image], ...one.extra),
          ),
        ]),
      ],
    ),
  );

/** Sets or adds what is at a path of keys and indexes. */
function put(tree: Tree, path: readonly (string | number)[], value: Tree): Tree {
  const [first, ...rest] = path;
  if (first === undefined) return value;
  if (typeof first === "number") {
    const items = Array.isArray(tree) ? (tree as readonly Tree[]) : [];
    return items.map((item, i) => (i === first ? put(item, rest, value) : item));
  }
  const list = tree !== null && typeof tree === "object" && "pairs" in tree ? tree.pairs : [];
  const found = list.findIndex(([key]) => key === first);
  if (found < 0) return pairs(...list, [first, put(pairs(), rest, value)]);
  return pairs(...list.map(([key, held], i): [string, Tree] => [key, i === found ? put(held, rest, value) : held]));
}

/** Somewhere in a pod, and a value that may or may not fit there. */
const field: fc.Arbitrary<readonly [readonly (string | number)[], Tree]> = fc.oneof(
  ...(
    [
      [["metadata"], "ObjectMeta", 2],
      [["spec"], "PodSpec", 6],
      [["spec", "containers", 0], "Container", 6],
      [["spec", "initContainers"], "[]Container", 2],
      [["spec", "securityContext"], "PodSecurityContext", 2],
      [["spec", "containers", 0, "securityContext"], "SecurityContext", 2],
      [["spec", "containers", 0, "livenessProbe"], "Probe", 2],
      [["spec", "containers", 0, "resources"], "ResourceRequirements", 2],
      [["spec", "resources"], "ResourceRequirements", 1],
      [["spec", "affinity"], "Affinity", 1],
      [["status"], "PodStatus", 1],
    ] as const
  ).map(([path, type, weight]) => ({
    weight,
    arbitrary: type.startsWith("[]")
      ? typed(type, 4).map((value) => [path, value] as const)
      : fc
          .constantFrom(...(structs.get(type) ?? []))
          .chain(([name, of]) => typed(of, 4).map((value) => [[...path, name], value] as const)),
  })),
  {
    weight: 2,
    arbitrary: fc
      .constantFrom(
        "hostPath",
        "emptyDir",
        "nfs",
        "iscsi",
        "fc",
        "azureDisk",
        "projected",
        "downwardAPI",
        "image",
        "gitRepo",
        "flexVolume",
        "rbd",
        "cephfs",
        "cinder",
        "scaleIO",
        "storageos",
        "quobyte",
        "flocker",
        "secret",
        "configMap",
        "csi",
        "ephemeral",
      )
      .chain((type) => {
        const of = structs.get("Volume")?.find(([name]) => name === type)?.[1] ?? "string";
        return typed(of, 4).map((value) => [["spec", "volumes"], [pairs(["name", "v"], [type, value])]] as const);
      }),
  },
  {
    weight: 1,
    arbitrary: fc
      .array(
        fc.tuple(
          fc.constantFrom(
            "kubernetes.io/config.mirror",
            "kubernetes.io/config.hash",
            "kubernetes.io/config.source",
            "scheduler.alpha.kubernetes.io/tolerations",
            "controller.kubernetes.io/pod-deletion-cost",
            "seccomp.security.alpha.kubernetes.io/pod",
            "container.seccomp.security.alpha.kubernetes.io/main",
            "container.apparmor.security.beta.kubernetes.io/main",
            "container.apparmor.security.beta.kubernetes.io/none",
            "A.b/C",
            "a b",
          ),
          fc.constantFrom<Tree>(
            "",
            "x",
            "1",
            "+1",
            "runtime/default",
            "unconfined",
            "localhost/a",
            "localhost/../a",
            '[{"key":"a","operator":"Exists"}]',
            '[{"Key":"a","operator":"X"}]',
            "[1]",
            "null",
            '[{"key":1}]',
            1,
          ),
        ),
        { minLength: 1, maxLength: 2 },
      )
      .map((list) => [["metadata", "annotations"], pairs(...list)] as const),
  },
);

const scalarPlaces = [
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["metadata", "uid"],
  ["metadata", "labels", "a"],
  ["spec", "containers", 0, "image"],
  ["spec", "containers", 0, "name"],
  ["spec", "containers", 0, "stdin"],
  ["spec", "containers", 0, "args"],
  ["spec", "hostNetwork"],
  ["spec", "terminationGracePeriodSeconds"],
  ["spec", "priority"],
  ["kind"],
  ["apiVersion"],
  ["unknown"],
  ["spec", "unknown"],
  ["spec"],
  ["metadata"],
] as const;

const places: Readonly<Record<string, readonly (string | number)[]>> = {
  c: ["spec", "containers", 0],
  i: ["spec", "initContainers", 0],
  v: ["spec", "volumes", 0],
};

/** A pod that has a place for every snippet, with the given ones in it. */
function ruledTree(list: readonly (readonly [string, string])[]): Tree {
  const container = pairs(
    ["name", "main"],
    ["image", "i:1"],
    ["volumeMounts", [pairs(["name", "v"], ["mountPath", "/v"])]],
  );
  const inits = list.some(([path]) => path.startsWith("i."))
    ? [["initContainers", [pairs(["name", "init"], ["image", "i"])]] as const]
    : [];
  let tree: Tree = pairs(
    ["apiVersion", "v1"],
    ["kind", "Pod"],
    ["metadata", pairs(["name", "ruled"])],
    ["spec", pairs(["volumes", [pairs(["name", "v"])]], ...inits, ["containers", [container]])],
  );
  for (const [path, value] of list) {
    const [first = "", ...rest] = path.split(".");
    tree = put(tree, [...(places[first] ?? [first]), ...rest], raw(value));
  }
  return tree;
}

const ruled = fc.array(fc.constantFrom(...snippets), { minLength: 1, maxLength: 3 }).map(ruledTree);

/** Pods with something done to them. */
const spoiledPod: fc.Arbitrary<Tree> = pod.chain((tree) =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant<Tree>(tree) },
    {
      weight: 6,
      arbitrary: fc
        .array(field, { minLength: 1, maxLength: 1 })
        .map((list) => list.reduce<Tree>((t, [path, value]) => put(t, path, value), tree)),
    },
    {
      weight: 4,
      arbitrary: fc.tuple(fc.constantFrom(...scalarPlaces), nasty).map(([path, value]) => put(tree, path, value)),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("Pod", "pod", "PodList", "List", "Namespace", "", "Pods")
        .map((kind) => put(tree, ["kind"], kind)),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("v1", "V1", "", "/v1", "apps/v1", "v1/v1", "a/b/c", "v2", "/")
        .map((version) => put(tree, ["apiVersion"], version)),
    },
    {
      weight: 1,
      arbitrary: fc
        .constantFrom("Kind", "KIND", "APIVersion", "\u212aind", "Metadata", "Spec")
        .map((key) => pairs(...tree.pairs, [key, "Pod"])),
    },
    {
      weight: 2,
      // A repeated key: the last counts in YAML, and is decoded into the first in JSON.
      arbitrary: fc
        .tuple(fc.constantFrom(...tree.pairs), wrong, fc.boolean(), pod)
        .map(([[key], value, other, second]) => {
          const again = other ? (second.pairs.find(([name]) => name === key)?.[1] ?? value) : value;
          return pairs(...tree.pairs, [key, again]);
        }),
    },
  ),
);

/** How a tree is spelled in YAML. */
interface Style {
  readonly indent: number;
  /** Lists not indented below their key. */
  readonly flush: boolean;
  /** From this depth on in `[]` and `{}`. */
  readonly flowAt: number;
  readonly quotes: "plain" | "single" | "double";
  readonly comments: boolean;
  readonly newline: string;
}

function quoted(text: string, style: Style): string {
  if (style.quotes === "single" && !/[\n\u0085\u2028]/.test(text)) return `'${text.replaceAll("'", "''")}'`;
  if (
    style.quotes === "plain" &&
    /^[A-Za-z][A-Za-z0-9./-]*$/.test(text) &&
    !/^(y|n|yes|no|on|off|true|false|null)$/i.test(text)
  )
    return text;
  return JSON.stringify(text);
}

function flow(tree: Tree, style: Style): string {
  if (tree === null || typeof tree === "number" || typeof tree === "boolean") return String(tree);
  if (typeof tree === "string") return quoted(tree, style);
  if ("raw" in tree) return tree.raw;
  if ("pairs" in tree)
    return `{${tree.pairs.map(([key, value]) => `${quoted(key, style)}: ${flow(value, style)}`).join(", ")}}`;
  return `[${tree.map((item) => flow(item, style)).join(", ")}]`;
}

function block(tree: Tree, style: Style, depth: number, column: number): string {
  const isTree = tree !== null && typeof tree === "object" && !("raw" in tree);
  if (!isTree || depth >= style.flowAt) return ` ${flow(tree, style)}\n`;
  const pad = " ".repeat(column);
  const comment = style.comments && depth % 2 === 0 ? " # note\n" : "\n";
  if ("pairs" in tree) {
    if (tree.pairs.length === 0) return " {}\n";
    return `${comment}${tree.pairs
      .map(([key, value]) => {
        const deeper = Array.isArray(value) && style.flush ? column : column + style.indent;
        return `${pad}${quoted(key, style)}:${block(value, style, depth + 1, deeper)}`;
      })
      .join("")}`;
  }
  const items = tree as readonly Tree[];
  if (items.length === 0) return " []\n";
  return `${comment}${items
    .map((item) => {
      const text = block(item, style, depth + 1, column + 2);
      // A mapping begins on the line of its dash.
      const compact = text.startsWith("\n") ? ` ${text.slice(1 + column + 2)}` : text;
      return `${pad}-${compact}`;
    })
    .join("")}`;
}

/** A manifest with some snippets in it. */
export function ruledManifest(list: readonly (readonly [string, string])[]): string {
  const plain: Style = { indent: 2, flush: false, flowAt: 99, quotes: "plain", comments: false, newline: "\n" };
  return block(ruledTree(list), plain, 0, 0).trimStart();
}

const style: fc.Arbitrary<Style> = fc.record({
  indent: fc.constantFrom(2, 2, 2, 1, 4, 8),
  flush: fc.boolean(),
  flowAt: fc.constantFrom(99, 99, 99, 3, 2, 1),
  quotes: fc.constantFrom<Style["quotes"]>("plain", "plain", "single", "double"),
  comments: fc.constantFrom(false, false, true),
  newline: fc.constantFrom("\n", "\n", "\n", "\n", "\r\n", "\r", "\u0085", "\u2028"),
});

const yaml = fc
  .tuple(fc.oneof({ weight: 3, arbitrary: spoiledPod }, { weight: 2, arbitrary: ruled }), style)
  .map(([tree, how]) => {
    const text = block(tree, how, 0, 0).replace(/^ ?\n?/, "");
    return how.newline === "\n" ? text : text.replaceAll("\n", how.newline);
  });

function json(tree: Tree, space: string): string {
  if (tree === null || typeof tree === "number" || typeof tree === "boolean") return String(tree);
  if (typeof tree === "string") return JSON.stringify(tree);
  if ("raw" in tree) return tree.raw;
  if ("pairs" in tree)
    return `{${space}${tree.pairs.map(([key, value]) => `${JSON.stringify(key)}:${space}${json(value, space)}`).join(`,${space}`)}}`;
  return `[${tree.map((item) => json(item, space)).join(",")}]`;
}

const jsonSpellings = [
  "1e3",
  "1.0",
  "01",
  "-0",
  "1E400",
  "+1",
  ".5",
  "NaN",
  '"\\u0041"',
  '"\\ud800"',
  '"\\ud83d\\ude00"',
  '"\\x"',
  "'a'",
  '"a\tb"',
  '"\u0001"',
  "tru",
  "nulL",
  "[1,]",
  "{,}",
  '{"a":1,}',
  "[]",
  "{}",
  "null",
  "0",
  "123456789012345678901",
  '"a\u2028b"',
].map(raw);
const jsonRaw = fc.constantFrom(...jsonSpellings);
const jsonText = fc
  .tuple(
    fc.oneof(
      { weight: 4, arbitrary: spoiledPod },
      {
        weight: 1,
        arbitrary: fc
          .tuple(pod, fc.constantFrom(...scalarPlaces), jsonRaw)
          .map(([tree, path, value]) => put(tree, path, value)),
      },
      {
        weight: 2,
        // Repeated keys deep down, decoded into one another.
        arbitrary: fc
          .tuple(pod, pod, pod, fc.constantFrom("metadata", "spec"), fc.boolean())
          .map(([a, b, c, key, unset]) => {
            const more = [b, c].flatMap((one): (readonly [string, Tree])[] =>
              one.pairs.filter(([name]) => name === key),
            );
            return pairs(...a.pairs, ...more.slice(0, 1), ...(unset ? [[key, null] as const] : []), ...more.slice(1));
          }),
      },
      {
        weight: 1,
        arbitrary: fc
          .tuple(
            pod,
            fc.array(fc.array(fc.subarray(["name", "image", "command"] as const), { maxLength: 3 }), {
              minLength: 1,
              maxLength: 3,
            }),
          )
          .map(([tree, lists]) => {
            const values: Record<string, Tree> = { name: "n", image: "i", command: ["x"] };
            const more = lists.map((list): [string, Tree] => [
              "containers",
              list.map((keys, i) =>
                pairs(...keys.map((key): [string, Tree] => [key, key === "name" ? `n${i}` : (values[key] ?? null)])),
              ),
            ]);
            const spec = tree.pairs.find(([key]) => key === "spec")?.[1];
            const held =
              spec !== null && typeof spec === "object" && "pairs" in (spec ?? {}) ? (spec as Pairs).pairs : [];
            return put(tree, ["spec"], pairs(...held, ...more));
          }),
      },
    ),
    fc.constantFrom("", "", "\n\t", " ", "\u00a0"),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("") },
      { weight: 1, arbitrary: fc.constantFrom(" ", "\n", "\u0085", "\u000b", "\ufeff", "# c\n", "---\n") },
    ),
    fc.oneof(
      { weight: 6, arbitrary: fc.constant("") },
      { weight: 1, arbitrary: fc.constantFrom("\n", " // c", "\n---\n", "x", "\u00a0", "\0", "{}") },
    ),
  )
  .map(([tree, space, before, after]) => before + json(tree, space) + after);

/** Pieces of YAML that go before, between and after. */
const fragments: readonly string[] = [
  "---\n",
  "--- \n",
  "---\t\n",
  "--- # c\n",
  "---a\n",
  "...\n",
  "... x\n",
  "%YAML 1.1\n---\n",
  "%YAML 1.2\n---\n",
  "%YAML 1.1\n",
  "%TAG ! tag:yaml.org,2002:\n---\n",
  "%TAG !! tag:x,\n---\n",
  "%FOO\n---\n",
  "%YAML 1.1 # c\n---\n",
  "%YAML 1.1 x\n---\n",
  "%YAML 1\n---\n",
  "%YAML 001.1\n---\n",
  "%YAML 01.01\n---\n",
  "%YAML 1.1\n%YAML 1.1\n---\n",
  "%TAG !e! tag:yaml.org,2002:\n---\n!e!map\n",
  "%TAG !e tag:x\n---\n",
  "%TAG !e! \n---\n",
  "%TAG !e! x%41\n---\n",
  "%TAG !e! x\n%TAG !e! y\n---\n",
  "%\n---\n",
  "a: !<tag:yaml.org,2002:%73tr> 1\n",
  "a: !x%e9 1\n",
  "a: !x%c3%a9 1\n",
  "a: !x%zz 1\n",
  "a: !<x 1\n",
  "a: !!x,y 1\n",
  "a: !a!b 1\n",
  "&k key: v\n*k : w\n",
  "&k 1: v\nlist: [*k, {*k : x}]\n",
  "&m {a: 1}: v\n",
  "!!merge <<: {kind: Pod}\n",
  "! <<: {kind: Pod}\n",
  "'<<': {kind: Pod}\n",
  "b: &b {kind: Pod}\n<<: *b\n",
  "b: &b {kind: Pod}\n<<: [*b, {apiVersion: v1}]\n",
  "b: &b [a]\n<<: *b\n",
  "a: .inf\na: b\n",
  "a: {~: b}\na: b\n",
  "# c\n",
  "#c",
  "\n\n",
  " \n",
  "\t\n",
  "\t# c\n",
  "foo: [unclosed\n",
  "a: b\n",
  "- a\n",
  "]\n",
  "}\n",
  '"x\n',
  "x\n",
  "\u0001",
  "\0",
  "\ufeff",
  "---\n---\n",
  "---\n...\n",
  "? a\n: b\n",
  "<<: {kind: Pod}\n",
  "<<: [{kind: Pod, apiVersion: v1}]\n",
  "<<: x\n",
  "base: &base {namespace: kube-system}\n",
  "anchor: &a [1, 2]\nalias: *a\n",
  "self: &s [*s]\n",
  "metadata: {<<: *base, name: merged}\n",
  `bomb: [&x0 [${"a,".repeat(9)}a], &x1 [${"*x0,".repeat(9)}*x0], &x2 [${"*x1,".repeat(9)}*x1], &x3 [${"*x2,".repeat(9)}*x2]]\n`,
  `deep: ${"[".repeat(200)}${"]".repeat(200)}\n`,
  "1: a\n",
  "1.5: a\n",
  "true: a\n",
  "~: a\n",
  "null: a\n",
  "18446744073709551615: a\n",
  "[a]: b\n",
  "{a: b}: c\n",
  "'a': b\n",
  "a : b\n",
  "a:b\n",
  "a:\tb\n",
  "a:  \n",
  "a: b: c\n",
  "a: 'b' c\n",
  "a: .inf\n",
  "a: [.nan]\n",
  " a: b\n",
  "  - b\n",
  "\ta: b\n",
  `${"k".repeat(1025)}: a\n`,
  `"${"k".repeat(1022)}": a\n`,
  "apiVersion: v1\nkind: Pod\nmetadata: {name: second}\nspec: {containers: [{name: c, image: i}]}\n",
];

const framed = fc
  .tuple(
    fc.array(fc.constantFrom(...fragments), { maxLength: 2 }),
    yaml,
    fc.array(fc.constantFrom(...fragments), { maxLength: 2 }),
  )
  .map(([before, text, after]) => [...before, text, ...after].join(""));

/** A text with single characters changed: where readers of YAML differ most. */
const edits = fc.array(
  fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
    kind: fc.constantFrom("insert", "insert", "delete", "replace", "newline", "indent", "outdent", "repeat"),
    text: fc.constantFrom(
      ..."\t \n:-?,[]{}#&*!|>'\"%@`\\0aZ~.<=\r".split(""),
      "\u0085",
      "\u2028",
      "\ufeff",
      "é",
      "😀",
      ": ",
      "- ",
      " #",
      "? ",
      "'",
      '"',
      "\n\n",
      "---\n",
      "...\n",
      "<<: ",
      "*a",
      "&a ",
    ),
  }),
  { minLength: 1, maxLength: 3 },
);

function edit(text: string, list: readonly { at: number; kind: string; text: string }[]): string {
  let result = text;
  for (const one of list) {
    const at = Math.floor(one.at * result.length);
    const line = result.lastIndexOf("\n", at) + 1;
    const end = result.indexOf("\n", at) < 0 ? result.length : result.indexOf("\n", at) + 1;
    if (one.kind === "insert") result = result.slice(0, at) + one.text + result.slice(at);
    else if (one.kind === "delete") result = result.slice(0, at) + result.slice(at + 1);
    else if (one.kind === "replace") result = result.slice(0, at) + one.text + result.slice(at + 1);
    else if (one.kind === "newline") result = `${result.slice(0, at)}\n${result.slice(at)}`;
    else if (one.kind === "indent") result = `${result.slice(0, line)} ${result.slice(line)}`;
    else if (one.kind === "outdent")
      result = result.slice(0, line) + result.slice(result[line] === " " ? line + 1 : line);
    else result = result.slice(0, end) + result.slice(line, end) + result.slice(end);
  }
  return result;
}

const edited = fc
  .tuple(
    fc.oneof({ weight: 3, arbitrary: yaml }, { weight: 1, arbitrary: framed }, { weight: 1, arbitrary: jsonText }),
    edits,
  )
  .map(([text, list]) => edit(text, list));

/** A short document of YAML's own characters, in an otherwise good pod, so that only its syntax decides. */
const soup = fc
  .tuple(
    fc.array(
      fc.oneof(
        fc.constantFrom(
          ..."\t \n:-?,[]{}#&*!|>'\"ab1~".split(""),
          "\n  ",
          "\n    ",
          ": ",
          "- ",
          "? ",
          ", ",
          "&a ",
          "*a",
          "!!str ",
          "'a'",
          '"b"',
          "|\n",
          ">-\n",
          "\n",
        ),
        fc.constantFrom(...nastyScalars),
      ),
      { minLength: 1, maxLength: 5 },
    ),
    fc.constantFrom("x: ", "x:\n  ", "x:\n- ", "", "- ", "x: {", "x: [", "? "),
    fc.boolean(),
  )
  .map(([parts, start, last]) => {
    const good = "apiVersion: v1\nkind: Pod\nmetadata: {name: soup}\nspec:\n  containers:\n  - {name: c, image: i}\n";
    const text = `${start}${parts.join("")}\n`;
    return last ? good + text : text + good;
  });

/** Ordinary manifests with up to three small changes. */
const changed = fc
  .tuple(
    fc.constantFrom(...ordinaryManifests),
    fc.array(
      fc.tuple(
        fc.constantFrom("mark", "cut", "value", "value", "value", "line", "repeat", "drop", "indent"),
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        fc.constantFrom(...marks),
        fc.constantFrom(...nastyScalars),
        someLine,
      ),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) =>
    changes.reduce((before, [change, where, mark, scalar, added]) => {
      const at = Math.floor(where * before.length);
      if (change === "mark") return before.slice(0, at) + mark + before.slice(at);
      if (change === "cut") return before.slice(0, at) + before.slice(at + 1);
      const lines = before.split("\n");
      const row = Math.floor(where * lines.length);
      const line = lines[row] ?? "";
      if (change === "value")
        lines[row] = line.replace(/^( *(?:- )?(?:[^:]+: )?).*/, (_, kept: string) => kept + scalar);
      else if (change === "indent") lines[row] = ` ${line}`;
      else
        lines.splice(
          row,
          change === "drop" ? 1 : 0,
          ...(change === "line" ? [added] : change === "repeat" ? [line] : []),
        );
      return lines.join("\n");
    }, text),
  );

/** Bytes instead of characters. */
const encoded = fc
  .tuple(
    fc.oneof(yaml, framed, jsonText, edited, soup, changed),
    fc.oneof(
      { weight: 20, arbitrary: fc.constant("utf8") },
      {
        weight: 3,
        arbitrary: fc.constantFrom("bom", "bombom", "utf16le", "utf16be", "utf16none", "broken", "cut", "far", "far"),
      },
    ),
    fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  )
  .map(([text, encoding, where]): Uint8Array => {
    const utf8 = Buffer.from(text);
    const at = Math.floor(where * utf8.length);
    const utf16 = Buffer.from(text, "utf16le");
    switch (encoding) {
      case "bom":
        return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), utf8]);
      case "bombom":
        return Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf]), utf8]);
      case "utf16le":
        return Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]);
      case "utf16be":
        return Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]);
      case "utf16none":
        return utf16;
      case "broken":
        return Buffer.concat([
          utf8.subarray(0, at),
          Buffer.from(
            [
              [0x80],
              [0xc0, 0x80],
              [0xed, 0xa0, 0x80],
              [0xf5],
              [0xe2, 0x28],
              [0x07],
              [0x7f],
              [0xc2, 0x80],
              [0xef, 0xbf, 0xbf],
            ][at % 9] ?? [],
          ),
          utf8.subarray(at),
        ]);
      case "cut":
        return utf8.subarray(0, at);
      case "far":
        return Buffer.concat([utf8, Buffer.from(`---\n${"# filler\n".repeat(at % 200)}`), Buffer.from([0x80, 0x0a])]);
      default:
        return utf8;
    }
  });

const fileNames = [
  "a.yaml",
  "b.yml",
  "c.json",
  "d",
  "e.yaml.bak",
  "f~",
  "Z.yaml",
  "0",
  "é.yaml",
  ".hidden",
  "k.manifest",
  "-x",
  "#y#",
  "😀",
  "\uffee",
];

/** A folder of one to four files. */
export const folder: fc.Arbitrary<readonly GeneratedFile[]> = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom(...fileNames), { minLength: 1, maxLength: 4 }),
    fc.array(encoded, { minLength: 4, maxLength: 4 }),
  )
  .map(([list, contents]) => list.map((name, i) => ({ name, bytes: contents[i] ?? Buffer.alloc(0) })));

const plainStyle: Style = { indent: 2, flush: false, flowAt: 99, quotes: "plain", comments: false, newline: "\n" };
const plainPod: Tree = pairs(
  ["apiVersion", "v1"],
  ["kind", "Pod"],
  ["metadata", pairs(["name", "plain"], ["labels", pairs(["a", "b"])])],
  ["spec", pairs(["containers", [pairs(["name", "main"], ["image", "i"])]])],
);

/** Every scalar in every place, every fragment before and behind, every snippet, every stretch to a bad byte. */
export function* everyManifest(): Generator<Uint8Array> {
  for (const path of scalarPlaces) {
    for (const scalar of nastyScalars)
      yield Buffer.from(block(put(plainPod, path, raw(scalar)), plainStyle, 0, 0).trimStart());
    for (const spelling of jsonSpellings) yield Buffer.from(json(put(plainPod, path, spelling), ""));
  }
  const plain = block(plainPod, plainStyle, 0, 0).trimStart();
  for (const fragment of fragments) {
    yield Buffer.from(fragment + plain);
    yield Buffer.from(plain + fragment);
    for (const other of fragments) yield Buffer.from(fragment + other + plain);
  }
  for (const snippet of snippets) yield Buffer.from(ruledManifest([snippet]));
  for (let length = 0; length < 1200; length += 3) {
    const start = Buffer.from(`${plain}---\n${"#".repeat(length % 3 === 0 ? length : length - 1)}é`);
    yield Buffer.concat([start, Buffer.from([0x80])]);
    yield Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), start, Buffer.from("\n\ufeff\n# x")]);
    yield Buffer.concat([Buffer.from(`#${"é".repeat(length)}\n${plain}...\n`), Buffer.from([0x07])]);
    yield Buffer.from(`#${"x".repeat(length)}\n\ufeff${plain}`);
  }
}

/** Pieces of YAML, to be strung together in every way. */
const pieces = [
  "a",
  "- ",
  "-",
  ": ",
  ":",
  "? ",
  "?",
  ", ",
  ",",
  "[",
  "]",
  "{",
  "}",
  "#",
  " #",
  "&a ",
  "*a",
  "!",
  "!!str ",
  "|",
  ">",
  "'",
  '"',
  "\n",
  "\n ",
  "\n  ",
  "\n- ",
  "\t",
  "b: ",
  "%",
  "\\",
];

/** Every string of up to three pieces in some surroundings. */
export function* everySoup(): Generator<Uint8Array> {
  const rest = "apiVersion: v1\nkind: Pod\nmetadata: {name: soup}\nspec:\n  containers:\n  - {name: c, image: i}\n";
  for (const [before, after] of [
    ["x: ", `\n${rest}`],
    ["x:\n  y: &a 1\n  z: ", `\n${rest}`],
    [`${rest}x: [`, "]\n"],
    [`${rest}x: {`, "}\n"],
    [`${rest}`, "\n"],
  ] as const) {
    for (const one of pieces) {
      for (const two of ["", ...pieces]) {
        for (const three of two === "" ? [""] : ["", ...pieces]) yield Buffer.from(before + one + two + three + after);
      }
    }
  }
}

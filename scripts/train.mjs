// What a probe runs first lies together in the binary: the build runs the binary it has just made against a server that
// gives every run the same answer, byte for byte and in the same steps, and Bun writes down the order in which functions
// and constants were used. No clock and no scheduler has a say in that order, so one commit still gives the same bytes.
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const nodeName = "node-1";
const pod = { namespace: "kube-system", name: `etcd-${nodeName}`, image: "registry.k8s.io/etcd:3.6.0" };

/**
 * @param binary A build whose bytecode is in no particular order yet.
 * @returns The order as `--bytecode-order` takes it: a file a run, the most frequent kind of run first.
 */
export async function train(binary, folder) {
  // A socket path takes 107 bytes: the project's own folder may be too deep.
  const place = mkdtempSync(join(tmpdir(), "kubelet-probe-train-"));
  const socket = join(place, "s");
  const manifests = join(place, "manifests");
  writeManifest(manifests);
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(socket, resolve));
  try {
    const staticPods = ["static-pods", "--node-name", nodeName];
    // Not of `socket`, and so not of all of `all`: who owns /tmp here is nothing the binary may depend on.
    const runs = [
      ["ready"],
      ["ready", "--profile", "kube", "--for", "readiness"],
      [...staticPods, "--expect", `${pod.namespace}/${pod.name}`],
      [...staticPods, "--manifests", manifests],
      ["all", "--checks", "ready,static-pods,rate-limit", "--manifests", manifests, "--node-name", nodeName],
    ];
    const files = [];
    for (const [at, words] of runs.entries()) {
      const file = join(folder, `order-${at}`);
      await runOnce(binary, [...words, "--socket", socket], file, join(place, "output"));
      files.push(file);
    }
    return files;
  } finally {
    server.close();
    rmSync(place, { recursive: true, force: true });
  }
}

function runOnce(binary, words, order, output) {
  // A file takes the output at once; after a pipe's turn something else may have happened, or not.
  const out = openSync(output, "w");
  // Nothing of this machine's environment: it could change what runs.
  const child = spawn(binary, words, { env: { BUN_BYTECODE_ORDER_OUT: order }, stdio: ["ignore", out, out] });
  closeSync(out);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (status) => {
      if (status === 0) resolve();
      else
        reject(new Error(`'${words.join(" ")}' ended with status ${status}: ${readFileSync(output, "utf8").trim()}`));
    });
  });
}

function writeManifest(folder) {
  mkdirSync(folder);
  const file = join(folder, "etcd.yaml");
  writeFileSync(
    file,
    `apiVersion: v1
kind: Pod
metadata:
  name: etcd
  namespace: ${pod.namespace}
  labels:
    component: etcd
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  containers:
  - name: etcd
    image: ${pod.image}
    command:
    - etcd
    - --data-dir=/var/lib/etcd
    volumeMounts:
    - mountPath: /var/lib/etcd
      name: data
  volumes:
  - name: data
    hostPath:
      path: /var/lib/etcd
      type: DirectoryOrCreate
`,
  );
  // Long before the pod was taken up: how long ago is said nowhere then.
  utimesSync(file, 1_700_000_000, 1_700_000_000);
}

// The frames of HTTP/2 that this takes (RFC 9113, section 6).
const [data, headers, settings] = [0, 1, 4];
const [endStream, endHeaders, acknowledged] = [1, 4, 1];

/**
 * One connection: the server's settings for the client's, and each request's answer once the client has acknowledged
 * them. It speaks when spoken to, so both sides always take the same steps.
 */
function answer(connection) {
  let input = Buffer.alloc(0);
  let isAcknowledged = false;
  const waiting = [];
  const reply = () => {
    const answers = waiting.splice(0).map(({ stream, isListing }) => (isListing ? listing(stream) : notFound(stream)));
    if (answers.length > 0) connection.write(Buffer.concat(answers));
  };
  let preface = 24;
  connection.on("error", () => {});
  connection.on("data", (chunk) => {
    input = Buffer.concat([input, chunk]);
    if (input.length < preface) return;
    input = input.subarray(preface);
    preface = 0;
    while (input.length >= 9 && input.length >= 9 + input.readUIntBE(0, 3)) {
      const length = input.readUIntBE(0, 3);
      const [type, flags, stream] = [input[3], input[4], input.readUInt32BE(5)];
      if (type === settings && (flags & acknowledged) === 0) {
        connection.write(Buffer.concat([frame(settings, 0, 0), frame(settings, acknowledged, 0)]));
      } else if (type === settings) isAcknowledged = true;
      // Only ListPods has an empty message, of five bytes with gRPC's prefix.
      else if (type === data) waiting.push({ stream, isListing: length === 5 });
      input = input.subarray(9 + length);
    }
    if (isAcknowledged) reply();
  });
}

function frame(type, flags, stream, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as literals that no table keeps (RFC 7541, section 6.2.2). */
function block(fields) {
  const text = (value) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
  return Buffer.concat(Object.entries(fields).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
}

const head = { ":status": "200", "content-type": "application/grpc" };

function listing(stream) {
  const pods = Buffer.concat([field(1, serializedPod("file")), field(1, serializedPod("api"))]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(pods.length, 1);
  return Buffer.concat([
    frame(headers, endHeaders, stream, block(head)),
    frame(data, 0, stream, Buffer.concat([prefix, pods])),
    frame(headers, endHeaders | endStream, stream, block({ "grpc-status": "0", "grpc-message": "" })),
  ]);
}

function notFound(stream) {
  const status = block({ ...head, "grpc-status": "5", "grpc-message": "pod not found" });
  return frame(headers, endHeaders | endStream, stream, status);
}

/** A core/v1 Pod that runs and is ready, by the field numbers of proto/pod.proto. */
function serializedPod(source) {
  const time = (seconds) => number(1, seconds);
  const annotation = (key, value) => field(12, field(1, key), field(2, value));
  const metadata = [
    field(1, source === "file" ? pod.name : "web-0"),
    field(3, pod.namespace),
    field(5, "0123456789abcdef0123456789abcdef"),
    field(8, time(1_700_000_100)),
    field(11, field(1, "component"), field(2, "etcd")),
    annotation("kubernetes.io/config.seen", "2023-11-14T22:15:00.123456789Z"),
    annotation("kubernetes.io/config.source", source),
  ];
  const spec = [field(2, field(1, "etcd"), field(2, pod.image), field(3, "etcd")), field(10, nodeName)];
  const running = field(2, field(1, time(1_700_000_110)));
  const status = [
    field(1, "Running"),
    field(2, field(1, "Ready"), field(2, "True"), field(4, time(1_700_000_120))),
    field(7, time(1_700_000_100)),
    field(8, field(1, "etcd"), field(2, running), number(4, 1), number(5, 0)),
  ];
  return Buffer.concat([field(1, ...metadata), field(2, ...spec), field(3, ...status)]);
}

/** A field of wire type 2: a text, or a message of the fields that follow. */
function field(id, ...parts) {
  const value = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
  return Buffer.concat([varint(id * 8 + 2), varint(value.length), value]);
}

function number(id, value) {
  return Buffer.concat([varint(id * 8), varint(value)]);
}

function varint(value) {
  const bytes = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128);
  return Buffer.from([...bytes, rest]);
}

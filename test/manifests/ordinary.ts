import fc from "fast-check";

/** Manifests as kubeadm and people write them. */

const probe = (kind: string, port: string, path: string): string => `    ${kind}:
      failureThreshold: 8
      httpGet:
        host: 192.0.2.10
        path: ${path}
        port: ${port}
        scheme: HTTPS
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
`;

/** What kubeadm writes for one of its components. */
function kubeadm(name: string, command: readonly string[], mounts: readonly (readonly [string, string])[]): string {
  return `apiVersion: v1
kind: Pod
metadata:
  annotations:
    kubeadm.kubernetes.io/${name}.advertise-address.endpoint: 192.0.2.10:6443
  creationTimestamp: null
  labels:
    component: ${name}
    tier: control-plane
  name: ${name}
  namespace: kube-system
spec:
  containers:
  - command:
    - ${name}
${command.map((option) => `    - ${option}\n`).join("")}    image: registry.k8s.io/${name}:v1.37.2
    imagePullPolicy: IfNotPresent
${probe("livenessProbe", "probe-port", "/livez")}    name: ${name}
    ports:
    - containerPort: 6443
      name: probe-port
      protocol: TCP
${probe("readinessProbe", "6443", "/readyz")}    resources:
      requests:
        cpu: 250m
        memory: 100Mi
${probe("startupProbe", "6443", "/livez")}    volumeMounts:
${mounts.map(([volume, path]) => `    - mountPath: ${path}\n      name: ${volume}\n      readOnly: true\n`).join("")}  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
${mounts.map(([volume, path]) => `  - hostPath:\n      path: ${path}\n      type: DirectoryOrCreate\n    name: ${volume}\n`).join("")}status: {}
`;
}

/** A small one of every kind of line. */
export const smallManifest = `---
# The node's own
apiVersion: v1   # the only one
kind: Pod

metadata:
    name: "small"
    labels: {}
    annotations:
        example.com/when: '2001-01-01'
spec:
  containers:
    -   name: main
        image: r.test:5000/a/b@sha256:0
        args:
        - --a=b
        - -c d:e #f
        env: []
        ports:
          - hostPort: 80
            containerPort: 0x50
  hostNetwork: yes
`;

export const ordinaryManifests: readonly string[] = [
  kubeadm(
    "etcd",
    [
      "--advertise-client-urls=https://192.0.2.10:2379",
      "--initial-cluster=cp-1=https://192.0.2.10:2380",
      "--snapshot-count=10000",
      "--trusted-ca-file=/etc/kubernetes/pki/etcd/ca.crt",
    ],
    [
      ["etcd-data", "/var/lib/etcd"],
      ["etcd-certs", "/etc/kubernetes/pki/etcd"],
    ],
  ),
  kubeadm(
    "kube-apiserver",
    [
      "--advertise-address=192.0.2.10",
      "--authorization-mode=Node,RBAC",
      "--enable-admission-plugins=NodeRestriction",
      "--etcd-servers=https://127.0.0.1:2379",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      "--service-cluster-ip-range=10.96.0.0/12",
    ],
    [
      ["ca-certs", "/etc/ssl/certs"],
      ["k8s-certs", "/etc/kubernetes/pki"],
    ],
  ),
  kubeadm(
    "kube-controller-manager",
    [
      "--bind-address=127.0.0.1",
      "--controllers=*,bootstrapsigner,tokencleaner",
      "--use-service-account-credentials=true",
    ],
    [["flexvolume-dir", "/usr/libexec/kubernetes/kubelet-plugins/volume/exec"]],
  ),
  kubeadm(
    "kube-scheduler",
    ["--kubeconfig=/etc/kubernetes/scheduler.conf", "--leader-elect=true"],
    [["kubeconfig", "/etc/kubernetes/scheduler.conf"]],
  ),
  smallManifest,
];

/** What means something in YAML, or is near to it. */
export const marks = [
  "-",
  " ",
  "  ",
  "- ",
  ":",
  ": ",
  "\n",
  "\n\n",
  "#",
  " #",
  '"',
  "'",
  "{",
  "}",
  "[",
  "]",
  ",",
  "?",
  "!",
  "&",
  "*",
  "|",
  ">",
  "%",
  "@",
  "\\",
  "<<: ",
  "\t",
  "\r",
  "é",
  "---\n",
  "...\n",
  "x",
  "1",
  "_",
  ".",
];

/** Lines such as those of a manifest, and some that are none. */
export const someLine = fc
  .tuple(
    fc.constantFrom("", "", "  ", "  ", "    ", "      ", " ", "   "),
    fc.constantFrom("", "", "", "- ", "-   "),
    fc.constantFrom("a: ", "b: ", "a:", "b:", "c.d/e:", "y: ", "1: ", "~: ", "", ""),
    fc.constantFrom(
      "",
      "",
      "",
      "x",
      "x y",
      "1",
      "-1",
      "0x1F",
      "1_0",
      "y",
      "null",
      ".inf",
      "1.50",
      "'q'",
      '"q"',
      "{}",
      "[]",
      "-x",
      "x:y",
      "<<",
      "2001-01-01",
      "1e3",
      "+.5",
      "---",
      "-",
    ),
    fc.constantFrom("", "", "", " ", " # c", "# c"),
  )
  .map((parts) => parts.join(""));

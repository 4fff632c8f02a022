// What each code means to whoever is woken by it: `explain` and docs/codes.md are made of this table. Every command
// works on the node itself while the control plane is down.

import type { Code } from "./codes.ts";
import type { Status } from "./status.ts";

/** What is said of one code. */
export interface Explanation {
  /** What was found. */
  readonly meaning: string;
  /** Likely causes, the most likely first; none for what is well. */
  readonly causes: readonly string[];
  /** What to do, in this order, each with the commands for it. */
  readonly actions: readonly (readonly [what: string, ...commands: string[]])[];
  /** The checks that report it; none for a code of the program itself. */
  readonly checks: readonly string[];
  /** When it has another status than its own. */
  readonly otherStatus?: { readonly status: Status; readonly when: string };
}

const socket = "/var/lib/kubelet/pods-api/pods-api.sock";
const manifests = "/etc/kubernetes/manifests";

const overSocket = ["socket", "ready", "watch", "rate-limit"];

const isRunning = [
  "Is the kubelet running, and what did it say last?",
  "systemctl status kubelet",
  "journalctl -u kubelet -n 50 --no-pager",
] as const;

const version = ["What are the versions?", "kubelet --version", "kubelet-probe --version"] as const;

const restartWarning =
  "A kubelet that is restarted while the API server is down stays Initializing until the API server is back.";

/** Every code. */
export const explanations: Readonly<Record<Code, Explanation>> = {
  SocketSecure: {
    meaning:
      "The socket is there, a server answers on it, and neither its mode nor the folders on the way to it let anybody " +
      "but its owner use or replace it. Whether the pods can be listed is another question: see the check ready.",
    causes: [],
    actions: [],
    checks: ["socket"],
  },
  Ready: {
    meaning:
      "ListPods was answered with OK and a listing that could be read whole. A kubelet of 1.36 does not check whether " +
      "it is ready: right after its start its listing may be empty or partial. What it lists is there, what it does not " +
      "list may only not be there yet.",
    causes: [],
    actions: [],
    checks: ["ready"],
  },
  StaticPodsHealthy: {
    meaning:
      "Every expected static pod is listed, is in phase Running and has the condition Ready. This is also the answer " +
      "where none is expected: a manifest folder that does not exist is an empty one to the kubelet.",
    causes: [],
    actions: [],
    checks: ["static-pods"],
  },
  RateLimitHeadroom: {
    meaning:
      "Every call of the burst was admitted. The limit is one bucket for all clients of this kubelet: 100 calls a " +
      "second, 10 at once.",
    causes: [],
    actions: [],
    checks: ["rate-limit"],
  },
  WatchHealthy: {
    meaning:
      "A watch opened, reached its first full state and held for as long as was asked, and the pods it showed were those " +
      "of a listing, but for pods that came, went or ended in between.",
    causes: [],
    actions: [],
    checks: ["watch"],
  },
  ManifestsClean: {
    meaning:
      "The kubelet of 1.37 makes one pod of every file in the folder of static pod manifests. This is also the answer for " +
      "a folder that does not exist, which is an empty one to the kubelet. The kubelet is not asked: whether the pods run " +
      "is another question, see the check static-pods.",
    causes: [],
    actions: [],
    checks: ["manifests"],
  },

  SocketMissing: {
    meaning:
      "Nothing is at the path of the socket, or a folder on the way to it does not exist. A kubelet that stops leaves " +
      "its socket file behind, so the Pods API was never served at this path.",
    causes: [
      "The feature gate PodsAPI is off. It is off by default in 1.36 and on by default in 1.37; older kubelets do not " +
        "have it.",
      "The kubelet has another root folder: k0s has /var/lib/k0s/kubelet, MicroK8s has " +
        "/var/snap/microk8s/common/var/lib/kubelet, and --root-dir names any other.",
      "The probe runs in a container that does not mount the folder pods-api.",
      "The kubelet has not started yet, or could not make the socket.",
      "The path is that of older documents, /var/lib/kubelet/pods/kubelet.sock.",
    ],
    actions: [
      ["See what is there.", "ls -la /var/lib/kubelet/pods-api/"],
      isRunning,
      [
        "Which version is it, which root folder and which feature gates does it have?",
        "kubelet --version",
        "tr '\\0' '\\n' < /proc/$(pidof kubelet)/cmdline",
        "grep -A5 featureGates /var/lib/kubelet/config.yaml",
      ],
      ["Did it fail to make the socket?", "journalctl -u kubelet -b | grep -iE 'pods? api'"],
      ["For another root folder give --kubelet-root DIR or --socket PATH."],
      [
        "With 1.36: set featureGates: {PodsAPI: true} in the kubelet's configuration and restart it, once the API " +
          `server is up. ${restartWarning}`,
        "systemctl restart kubelet",
      ],
    ],
    checks: overSocket,
  },
  SocketNotASocket: {
    meaning: "Something else than a socket is at the path: a folder, a regular file or a FIFO. The message says which.",
    causes: [
      "A container mounted the path before the kubelet had made the socket, and a folder was created for the mount.",
      "The option --socket names the folder and not the socket in it.",
      "A backup or a copy put a file there.",
    ],
    actions: [
      ["See what is there, and whether something is mounted on it.", `ls -ld ${socket}`, `findmnt ${socket}`],
      ["Mount the folder pods-api into containers, never the socket itself."],
      [
        `Move it out of the way and restart the kubelet, once the API server is up. ${restartWarning}`,
        `mv ${socket} /var/lib/kubelet/pods-api.old`,
        "systemctl restart kubelet",
      ],
    ],
    checks: overSocket,
  },
  SocketDead: {
    meaning:
      "The socket file is there, and nobody listens on it: connecting gives ECONNREFUSED. The file outlives the kubelet " +
      "that made it.",
    causes: [
      "The kubelet has stopped, or crashes as soon as it starts. Containers that run keep running without it.",
      "In a container: the socket file is mounted and not its folder. A kubelet makes a new file at each start, and the " +
        "mount keeps the old one.",
      "The kubelet runs without the Pods API: the feature gate PodsAPI was turned off, or the kubelet was downgraded.",
      "Rarely: the kubelet is there but stopped or frozen, and thousands of connections wait. The runtime of the binary " +
        "does not tell a full queue from a refusal.",
    ],
    actions: [
      isRunning,
      [
        "When was the socket made, and when did the kubelet start? A live socket is as old as the process.",
        `stat -c %y ${socket}`,
        "systemctl show kubelet -p ActiveEnterTimestamp",
      ],
      [
        "In the container: is the file itself mounted? Mount the folder pods-api. The check socket says so beforehand.",
        "grep pods-api /proc/self/mountinfo",
      ],
      [
        "If the kubelet runs: is the gate on?",
        "grep -A5 featureGates /var/lib/kubelet/config.yaml",
        "tr '\\0' '\\n' < /proc/$(pidof kubelet)/cmdline | grep feature-gates",
      ],
      ["What runs meanwhile?", "crictl ps"],
    ],
    checks: overSocket,
  },
  SocketInsecure: {
    meaning:
      "Somebody besides the owner can connect to the socket, or can replace it or a folder on the way to it with their own. " +
      "The API gives whole pods, the values of their environment included, and takes no credentials. Who that is comes " +
      "from owners, modes and sticky bits of every folder and link, and from /etc/passwd and /etc/group; users of a " +
      "directory service and access control lists are not seen.",
    causes: [
      "The kubelet runs with another umask than 022. It sets no mode: 0755 for the socket and 0750 for its folder are " +
        "what umask 022 leaves.",
      "Somebody changed a mode or an owner to let an agent in.",
      "The kubelet's root folder, or what a link on the way leads to, lies below a folder that others can write to.",
      "A user was added to a group that the socket or a folder is open to.",
    ],
    actions: [
      [
        "See owner and mode of every folder on the way, and who is in the group.",
        "kubelet-probe socket -v",
        `namei -l ${socket}`,
        "getent group GROUP",
        `getfacl -p $(dirname ${socket})`,
      ],
      [
        "With which umask does the kubelet run? Set UMask=0022 in its unit if it is another.",
        "systemctl show kubelet -p UMask",
      ],
      [
        "Take the permission away; the kubelet does not undo it before its next start.",
        "cd /var/lib/kubelet && chmod go-w pods-api pods-api/pods-api.sock",
      ],
      ["If another user owns it on purpose, name the user: --owner UID."],
    ],
    checks: ["socket"],
    otherStatus: {
      status: "WARNING",
      when: "where nobody gets there now, and one step would do: a folder above keeps them out, or the group is empty",
    },
  },
  PermissionDenied: {
    meaning:
      "This user may not look at the socket or not connect to it (EACCES or EPERM). Whether the kubelet is well is not " +
      "known. The message says whether the mode or a security module refused.",
    causes: [
      "The probe does not run as root. Connecting needs write permission, and the kubelet's socket is 0755 root:root in " +
        "a folder 0750 root:root.",
      "SELinux or AppArmor refuses although owner and mode are right; a container's label is the usual reason.",
      "The probe is root of a container without the capability DAC_OVERRIDE, or of a user namespace.",
    ],
    actions: [
      ["Who runs the probe, and whose is the socket?", "id", `ls -laZ $(dirname ${socket})`],
      ["Try as root.", "sudo kubelet-probe socket"],
      [
        "Did a security module refuse?",
        "getenforce",
        "ausearch -m avc -ts recent",
        "dmesg | grep -i -e apparmor -e denied",
      ],
      ["Run the probe as root, by a sudo rule or a systemd timer. A wider mode would be SocketInsecure."],
    ],
    checks: overSocket,
  },
  PathTooLong: {
    meaning: "The path of the socket has more than 107 bytes, and Linux connects to no longer one.",
    causes: ["The kubelet's root folder is deep in the file tree.", "The path was put together wrongly."],
    actions: [
      [
        "Reach the root folder by a short link, and name that.",
        "ln -s LONG/ROOT /run/kubelet-root",
        "kubelet-probe ready --kubelet-root /run/kubelet-root",
      ],
    ],
    checks: overSocket,
  },
  Timeout: {
    meaning:
      "There was no connection, no HTTP/2 handshake or no whole answer before the deadline. The message says which of " +
      "these it waited for.",
    causes: [
      "The node is overloaded: no CPU time, slow disk, no memory left. The kubelet or the probe itself does not get on.",
      "The deadline is short for this node: it is 900ms with the profile kube, 4s with npd, 10s with nagios.",
      "The kubelet is stopped or hangs, on its container runtime or a file system for example.",
      "The listing is large, and the probe has a low CPU limit.",
    ],
    actions: [
      ["Try again with more time. If that is Ready, the node is slow.", "kubelet-probe ready --timeout 30s -v"],
      ["Is the node short of something?", "uptime", "head /proc/pressure/*"],
      [
        "Does the kubelet answer anything, and is it stopped (T) or stuck in the kernel (D)?",
        "curl -sS -m 5 http://127.0.0.1:10248/healthz; echo",
        "ps -o pid,stat,etime,pcpu,wchan:20 -C kubelet",
      ],
      ["Does the container runtime answer?", "crictl info | head -20"],
      ["What did the kubelet say?", "journalctl -u kubelet --since -5min --no-pager | tail -50"],
      ["In a container: give timeoutSeconds more than --timeout, and --timeout more than a slow answer takes."],
    ],
    checks: [...overSocket, "manifests", "static-pods"],
  },
  NotGrpc: {
    meaning: "A server answers on the socket, and what it says is not HTTP/2 with gRPC.",
    causes: [
      "The option --socket names the socket of another program, such as a Docker engine.",
      "Something stands between the probe and the kubelet: a proxy, or a server with TLS.",
    ],
    actions: [
      ["Ask at the kubelet's own path.", `kubelet-probe ready --socket ${socket}`],
      ["Whose socket is it?", `ls -l ${socket}`, "ss -xlp"],
    ],
    checks: overSocket,
  },
  WrongService: {
    meaning:
      "A gRPC server answers, and it does not know v1alpha1.Pods (UNIMPLEMENTED). The kubelets of 1.36 and 1.37 serve " +
      "that name and no other.",
    causes: [
      "The option --socket names another socket of the kubelet: pod-resources/kubelet.sock or " +
        "device-plugins/kubelet.sock; or that of the container runtime.",
      "The kubelet is newer than this probe, and serves another version of the API.",
    ],
    actions: [["Ask at the path of the Pods API.", `kubelet-probe ready --socket ${socket}`], version],
    checks: ["ready", "watch", "rate-limit"],
  },
  Initializing: {
    meaning:
      'The kubelet runs and answers "Kubelet is initializing": it has not read all of its sources of pods, so it lists ' +
      "none. This is not an empty node: static pods start and run meanwhile.",
    causes: [
      "The kubelet was started or restarted while the API server cannot be reached. It stays like this for as long as " +
        "that lasts.",
      "The kubelet has just started; then this passes within seconds.",
      "The API server refuses the kubelet: an expired client certificate, a wrong clock, a removed node.",
    ],
    actions: [
      ["Wait for it, for a minute.", "kubelet-probe ready --wait --timeout 60s"],
      [
        "Do not restart the kubelet: that starts the wait anew. See what runs on this node.",
        "crictl pods",
        "crictl ps -a | grep -E 'kube-apiserver|etcd'",
      ],
      [
        "Which API server is it, and what does the kubelet say of it?",
        "grep server: /etc/kubernetes/kubelet.conf",
        "journalctl -u kubelet --since -5min | grep -iE 'refused|x509|unauth'",
      ],
      [
        "Is the kubelet's certificate still good?",
        "cd /var/lib/kubelet/pki",
        "openssl x509 -noout -enddate -in kubelet-client-current.pem",
      ],
    ],
    checks: ["ready", "watch"],
    otherStatus: {
      status: "CRITICAL",
      when: "once it has lasted longer than --init-grace (5m), counted from the time of the socket file",
    },
  },
  RateLimited: {
    meaning:
      'The kubelet refused calls with "rejected by rate limit". One bucket serves all clients: 100 calls a second, 10 at ' +
      "once. Other agents of this node are refused as well.",
    causes: [
      "An agent lists in a loop, or asks for each pod with GetPod, without a pause.",
      "Many clients start at once, after a restart of the kubelet for example.",
      "Clients retry without a pause while the kubelet is initializing: those answers count too.",
    ],
    actions: [
      ["Is it steady, or has it passed?", "kubelet-probe rate-limit --burst 10 -v"],
      [
        "How many calls were admitted in ten seconds? 1000 is the limit. Refused calls are in no log and in no metric.",
        "journalctl -u kubelet --since -10s | grep -cE '(ListPods|GetPod) called'",
      ],
      [
        "Who is connected? The number before the last column is the client's end: look for it in the whole output.",
        "ss -xp | grep pods-api/",
      ],
      ["Let the agent use WatchPods, which costs no token, or keep what it listed."],
    ],
    checks: ["ready", "watch", "rate-limit"],
    otherStatus: { status: "CRITICAL", when: "in the check rate-limit, when no call at all is admitted" },
  },
  WatchDropped: {
    meaning: "The kubelet ended a watch, and ended it again after it was opened once more.",
    causes: [
      "The reader is too slow: the kubelet drops a watcher that does not keep up.",
      "The kubelet is shutting down or restarting.",
    ],
    actions: [
      ["Did the kubelet drop it?", "journalctl -u kubelet --since -5min | grep -i 'watch client'"],
      ["An agent has to list again after this: what changed meanwhile is lost."],
    ],
    checks: ["watch"],
  },
  WatchDiverged: {
    meaning:
      "A pod that two watches showed is not in the listing made between them, or one that two listings had is not in the " +
      "watch between them. The two may differ in pods that come, go or end, but not in one that is there all the time: " +
      "who follows this watch has a wrong inventory.",
    causes: [
      "Something between the probe and the kubelet answers in its place, from a copy of its own.",
      "A fault of this version of the kubelet.",
      "A static pod whose manifest was taken away and put back within the run: it has its old UID again.",
    ],
    actions: [
      ["Does it last?", "kubelet-probe watch -v --timeout 30s"],
      ["Who serves the socket?", "ss -xlp | grep pods-api"],
      version,
      ["Restart the agents that follow a watch: they list again at their start."],
    ],
    checks: ["watch"],
  },
  AnswerTooLarge: {
    meaning:
      "The answer is over the limit of this client, --max-bytes (64 MiB). The kubelet has no limit and no pages: it " +
      "lists every pod whole.",
    causes: [
      "There are very many or very large pods: long environments, annotations or messages, or thousands that have ended.",
      "The server at the path is not the kubelet.",
    ],
    actions: [
      ["How many pods are there?", "crictl pods -q | wc -l"],
      ["Allow more, for once.", "kubelet-probe ready -v --max-bytes 268435456 --timeout 60s"],
    ],
    checks: ["ready", "watch"],
  },
  ConnectionLost: {
    meaning: "The connection broke during the call, and again at a second try: end of file, reset or GOAWAY.",
    causes: [
      "The kubelet is restarting or crashes, by a panic or out of memory.",
      "Something stands between the probe and the kubelet and closes connections.",
    ],
    actions: [
      [
        "Did the kubelet restart, and why?",
        "systemctl show kubelet -p NRestarts -p ActiveEnterTimestamp",
        "journalctl -u kubelet -b | grep -iE 'panic|fatal|Started kubelet' | tail",
        "dmesg -T | grep -iE 'out of memory|oom' | tail",
      ],
      ["Does it last?", "kubelet-probe ready --wait --timeout 60s"],
    ],
    checks: overSocket,
  },
  Undecodable: {
    meaning: "The server said OK, and its answer is not the protobuf it should be. Nothing of it is taken for true.",
    causes: [
      "The server at the path is not the kubelet.",
      "The kubelet is newer than this probe and changed the format.",
      "This probe has a bug.",
    ],
    actions: [version, ["Report it, with both versions and the line that was printed."]],
    checks: ["ready", "watch", "rate-limit"],
  },
  ServerError: {
    meaning: "The kubelet answered the call with an error that has no code of its own. The message names it.",
    causes: ["The kubelet has a fault of its own.", "The server at the path is not the kubelet."],
    actions: [["What did the kubelet say?", "journalctl -u kubelet --since -5min --no-pager | tail -50"], version],
    checks: ["ready", "watch"],
  },
  InventoryUnavailable: {
    meaning:
      "The pods could not be listed, so nothing is known of them. This does not mean that there are none. The cause is " +
      "another code, and the message has it.",
    causes: ["Whatever the cause says: SocketDead, Initializing, RateLimited, Timeout and others."],
    actions: [
      ["Read about the cause, for example:", "kubelet-probe explain Initializing"],
      ["See meanwhile what runs on this node.", "crictl pods", "crictl ps -a"],
    ],
    checks: ["static-pods"],
  },

  StaticPodMissing: {
    meaning:
      "A static pod that must be on this node is not listed by the kubelet. Static pods are matched by namespace and full " +
      "name, which ends with the node's name. In the check manifests: the folder gives fewer pods than --pods demands.",
    causes: [
      "The kubelet does not take the manifest, and the message says why it was refused if it is known. A broken edit " +
        "removes a running pod at the next scan, within 20 seconds.",
      "The manifest was moved away, as kubeadm and backups do, and did not come back.",
      "The kubelet reads another folder than the one the probe reads.",
      "The node is called otherwise than the probe takes it to be.",
      "Two manifests have one metadata.uid; one of the two pods is lost.",
      "The list of --expect is out of date.",
    ],
    actions: [
      [
        "What becomes of each manifest, and what does the kubelet say of them?",
        "kubelet-probe manifests -v",
        "journalctl -u kubelet -b | grep -iE 'manifest|config path' | tail",
      ],
      [
        "Which folder does it read?",
        "grep staticPodPath /var/lib/kubelet/config.yaml",
        "tr '\\0' '\\n' < /proc/$(pidof kubelet)/cmdline",
      ],
      ["Which static pods are listed, and under which names?", "kubelet-probe static-pods --output json"],
      ["Do its containers run all the same?", "crictl ps -a"],
      ["For another node name give --node-name NAME."],
    ],
    checks: ["static-pods", "manifests"],
    otherStatus: {
      status: "WARNING",
      when: "while its manifest is younger than a scan (20 s) and 10 s more, or the kubelet has served for less than 10 s",
    },
  },
  StaticPodFailed: {
    meaning:
      "A static pod is listed and has ended: its phase is Failed or Succeeded. It does not run, and the kubelet does not " +
      "start it again by itself.",
    causes: [
      "It was evicted: the node ran short of disk or memory.",
      "The kubelet did not admit it: not enough CPU or memory is left, or a port is taken.",
      "Its restartPolicy is Never or OnFailure, and its containers have ended.",
    ],
    actions: [
      [
        "Is the node short of something?",
        "df -h /var/lib/kubelet /var/lib/containerd",
        "df -i /var/lib/kubelet",
        "free -m",
      ],
      ["Why did it end?", "journalctl -u kubelet -b | grep -iE 'evict|admi' | tail", "crictl ps -a"],
      [
        "Once the reason is gone, take its manifest away and put it back after a scan: that makes a new pod.",
        `mv ${manifests}/NAME.yaml /root/ && sleep 30`,
        `mv /root/NAME.yaml ${manifests}/`,
      ],
    ],
    checks: ["static-pods"],
  },
  StaticPodNotReady: {
    meaning:
      "A static pod is listed and is not ready: it is pending, its containers do not start or crash, its readiness probe " +
      "does not pass, or it is being terminated. The message has the reason the kubelet gives.",
    causes: [
      "Its container ends soon after each start (CrashLoopBackOff): a wrong flag, a missing file, an expired certificate, " +
        "a dependency such as etcd.",
      "Its image cannot be pulled (ImagePullBackOff, ErrImagePull).",
      "Its readiness probe does not pass yet, or does not pass any more.",
      "It has only just started.",
    ],
    actions: [
      [
        "Look at its containers and at what the last one said.",
        "crictl ps -a",
        "crictl logs --tail 50 $(crictl ps -aq --name NAME | head -1)",
      ],
      ["Is the image there?", "crictl images"],
      ["Are the certificates still good?", "kubeadm certs check-expiration"],
      ["What does the kubelet say?", "journalctl -u kubelet --since -5min | grep NAME | tail"],
    ],
    checks: ["static-pods"],
    otherStatus: { status: "CRITICAL", when: "once it has lasted longer than --ready-grace (5m)" },
  },
  StaticPodUnexpected: {
    meaning:
      "The kubelet runs a static pod from a file, and neither a manifest nor --expect explains it. Whoever can write to " +
      "the kubelet's manifests can run anything as root, so this is worth a look. In the check manifests: the folder " +
      "gives more pods than --pods demands.",
    causes: [
      "The list of --expect is out of date.",
      "The kubelet reads another folder than the one the probe reads.",
      "Its manifest was removed a moment ago, and the pod is still going.",
      "Somebody put a manifest there.",
    ],
    actions: [
      [
        "Which folder does the kubelet read, and what is in it?",
        "grep staticPodPath /var/lib/kubelet/config.yaml",
        `ls -la ${manifests}`,
      ],
      ["What runs in the pod?", "crictl pods --name NAME", "crictl ps --pod ID"],
      ["If it belongs there, add it to --expect."],
    ],
    checks: ["static-pods", "manifests"],
  },
  StaticPodStale: {
    meaning:
      "A static pod is listed with other images than its manifest has, and the manifest is old enough to have been read: " +
      "the kubelet runs an earlier version of it. A manifest that was only touched, or changed in a comment, makes no pod " +
      "stale: the kubelet sees no change in it.",
    causes: [
      "Two files give the same pod, such as a copy named .bak, and the kubelet takes the last one by name.",
      "The old pod is still being terminated, and the new one waits for that.",
      "The kubelet reads another folder than the one the probe reads, or does not get round to reading it.",
    ],
    actions: [
      ["Which files give the pod? Every file counts, whatever its extension.", `grep -n 'image:' ${manifests}/*`],
      ["What does the kubelet say?", "journalctl -u kubelet -b | grep -iE 'manifest|config path' | tail"],
      ["Which image runs?", "crictl ps --name NAME"],
    ],
    checks: ["static-pods"],
  },

  ManifestRefused: {
    meaning:
      "A manifest says that it is a Pod, the kubelet of 1.37 does not run it, and no other file gives that pod. The " +
      "message names file and reason.",
    causes: [
      "It refers to something of the API server: a service account, Secret, ConfigMap, claim or the like. Kubelets of " +
        "1.37 refuse that; older ones can be told to run it.",
      "It is not a valid pod: no name, a wrong name, no container, no image. Keys are case-sensitive.",
      "It was broken by an edit.",
      "It is a patch or a template that does not belong into the folder.",
    ],
    actions: [
      [
        "See every file with its verdict, and what the kubelet says.",
        "kubelet-probe manifests -v",
        "journalctl -u kubelet -b | grep -i 'manifest file' | tail",
      ],
      ["Mend the file, or move it out of the folder. The kubelet reads it again within 20 seconds."],
      ["Try a change before it gets to the node.", "kubelet-probe manifests --manifests /DIR --node-name NAME"],
    ],
    checks: ["manifests", "static-pods"],
    otherStatus: {
      status: "WARNING",
      when: "in all, where the kubelet lists the pod: it is older, or has not read the file again yet",
    },
  },
  ManifestIgnored: {
    meaning:
      "The folder of manifests has something of which the kubelet makes no pod: a file that is no pod, an empty file, a " +
      "link to nothing, a patch of a pod that another file gives, or further documents behind the first one of a file. " +
      "The check static-pods only reports files whose text is broken, for there may be a pod in them that is missed.",
    causes: [
      "A file is there by mistake: a patch, a list, a README.",
      "Several pods were put into one file. The kubelet reads the first document only.",
      "A broken edit: the file is no YAML any more. The pod it gave is taken away at the next scan.",
    ],
    actions: [
      ["See every file with its verdict.", "kubelet-probe manifests -v"],
      ["Give each pod a file of its own, and move the rest away.", `ls -la ${manifests}`],
      ["For files that are to stay, name them: --ignore 'README*'."],
    ],
    checks: ["manifests", "static-pods"],
  },
  ManifestShadowed: {
    meaning:
      "Two files give one pod, and the kubelet runs the one that is last by name; or two files give their pods one " +
      "metadata.uid, and the kubelet keeps one of the two, no matter which.",
    causes: [
      "A backup was left beside the manifest, such as kube-apiserver.yaml.bak: any extension counts.",
      "A manifest was copied with its metadata.uid, or without a change of its name.",
    ],
    actions: [
      ["Which files, and which one runs?", "kubelet-probe manifests -v", `grep -nE 'image:|uid:' ${manifests}/*`],
      ["Keep backups elsewhere, or under a name that begins with a dot.", `ls -la ${manifests}`],
    ],
    checks: ["manifests"],
  },
  ManifestsUnreadable: {
    meaning:
      "The manifests, one of them, or the kubelet's configuration that says where they are, could not be read. What " +
      "should run here is not known.",
    causes: [
      "The probe does not run as root.",
      "A path is wrong: a part of it is a file, or --kubelet-config names none.",
      "The file system has an error.",
    ],
    actions: [
      ["Who may read them?", "id", `namei -l ${manifests} /var/lib/kubelet/config.yaml`],
      ["Does the disk have errors?", "dmesg -T | grep -iE 'I/O error|remount' | tail"],
      ["Name the pods instead, and no file is read: --expect NAMESPACE/NAME,..."],
    ],
    checks: ["manifests", "static-pods"],
    otherStatus: {
      status: "CRITICAL",
      when: "in the check manifests, where --pods demands some and there is no folder",
    },
  },

  ThresholdExceeded: {
    meaning:
      "The main metric of the check is outside the range that --warning or --critical gives. The message has both.",
    causes: ["The value is worse than was asked for.", "The range is not meant: 10 alerts above 10, 10: below it."],
    actions: [
      ["What is the main metric, and what are its ranges?", "kubelet-probe CHECK --help"],
      ["See more.", "kubelet-probe CHECK -v"],
    ],
    checks: ["ready", "manifests", "static-pods", "watch", "rate-limit"],
    otherStatus: { status: "CRITICAL", when: "outside the range of --critical" },
  },
  BadUsage: {
    meaning: "The command line or an environment variable cannot be used, so nothing was asked. The message says what.",
    causes: [
      "An option is unknown, has no value or has one that is not accepted.",
      "A variable KUBELET_PROBE_... is set to something that is not accepted.",
    ],
    actions: [["What is accepted?", "kubelet-probe CHECK --help", "env | grep KUBELET_PROBE_"]],
    checks: [],
  },
  InternalError: {
    meaning: "This program failed by itself or was ended from outside. Nothing is known of the kubelet.",
    causes: [
      "Whatever runs the probe ended it (SIGTERM) before its own deadline: its timeout is shorter than --timeout.",
      "This is a bug.",
    ],
    actions: [
      ["Give --timeout less time than whatever runs the probe gives it."],
      ["Report anything else, with the line that was printed and the version.", "kubelet-probe --version"],
    ],
    checks: ["socket", "ready", "manifests", "static-pods", "watch", "rate-limit"],
  },
};

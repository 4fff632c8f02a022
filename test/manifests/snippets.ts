/**
 * What can be put into a pod so that one rule or another decides about it: a path, and a value in YAML's `{}` and `[]`.
 * `c` stands for the first container, `i` for one init container, `v` for the source of a volume that is mounted.
 */
export const snippets: readonly (readonly [string, string])[] = `
spec.hostNetwork true
spec.hostPID true
spec.hostIPC true
spec.hostUsers false
spec.hostUsers true
spec.shareProcessNamespace true
spec.shareProcessNamespace false
spec.restartPolicy Never
spec.restartPolicy OnFailure
spec.os {name: linux}
spec.os {name: windows}
spec.os {name: beos}
spec.os {}
spec.dnsPolicy None
spec.dnsConfig {nameservers: [1.1.1.1]}
spec.dnsConfig {nameservers: [1.1.1.1, 2.2.2.2, "::1", "2001:db8::1"]}
spec.dnsConfig {nameservers: ["::ffff:1.2.3.4"]}
spec.dnsConfig {nameservers: ["1.2.3.04"]}
spec.dnsConfig {nameservers: ["fe80::1%eth0"]}
spec.dnsConfig {nameservers: ["::1.2.3.4"]}
spec.dnsConfig {nameservers: ["1:2:3:4:5:6:1.2.3.4"]}
spec.dnsConfig {nameservers: ["1:2:3:4:5:6:7::"]}
spec.dnsConfig {nameservers: ["1:2:3:4:5:6:7:8::"]}
spec.dnsConfig {nameservers: ["1::2::3"]}
spec.dnsConfig {nameservers: ["12345::"]}
spec.dnsConfig {nameservers: ["0:0:0:0:0:ffff:1:2"]}
spec.dnsConfig {searches: [".", a.b., _a.b, a_b, -a]}
spec.dnsConfig {searches: [".", a.b., _a.b, a_b]}
spec.dnsConfig {options: [{name: ndots, value: "1"}]}
spec.dnsConfig {options: [{value: "1"}]}
spec.hostname a
spec.hostname a.b
spec.subdomain a-
spec.hostnameOverride a.b
spec.hostnameOverride ""
spec.setHostnameAsFQDN true
spec.priorityClassName A
spec.runtimeClassName a
spec.runtimeClassName ""
spec.preemptionPolicy Never
spec.preemptionPolicy ""
spec.activeDeadlineSeconds 0
spec.activeDeadlineSeconds 2147483647
spec.activeDeadlineSeconds 2147483648
spec.terminationGracePeriodSeconds -1
spec.terminationGracePeriodSeconds 0
spec.terminationGracePeriodSeconds 60
spec.hostAliases [{ip: 1.2.3.4, hostnames: [a.b]}]
spec.hostAliases [{ip: 1.2.3.4, hostnames: [A]}]
spec.hostAliases [{ip: ""}]
spec.overhead {cpu: 100m}
spec.overhead {cpu: -1}
spec.overhead {foo: 1}
spec.overhead {example.com/a: 1}
spec.imagePullSecrets [{}]
spec.imagePullSecrets [{name: a}]
spec.schedulingGates [{name: a}]
spec.schedulingGroup {podGroupName: a}
spec.schedulingGroup {}
spec.evictionResponders [{name: a.b/c}]
spec.resourceClaims [{name: a, resourceClaimName: b}]
spec.ephemeralContainers [{name: e, image: i}]
spec.readinessGates [{conditionType: a.b/c}]
spec.readinessGates [{conditionType: ""}]
spec.nodeSelector {a: b}
spec.nodeSelector {a: "b c"}
spec.nodeSelector {"a b": c}
spec.tolerations [{key: a, operator: Exists, value: b}]
spec.tolerations [{key: a, operator: Exists}]
spec.tolerations [{key: a, value: b, effect: NoExecute, tolerationSeconds: 1}]
spec.tolerations [{key: a, value: b, tolerationSeconds: 1}]
spec.tolerations [{key: a, operator: Gt, value: "1"}]
spec.tolerations [{operator: Equal}]
spec.tolerations [{operator: Exists, effect: X}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: ScheduleAnyway, minDomains: 1}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: 1, nodeAffinityPolicy: Honor, nodeTaintsPolicy: X}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a], labelSelector: {matchLabels: {a: b}}}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a], labelSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: Exists}]}}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}]
spec.topologySpreadConstraints [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: ["a b"], labelSelector: {}}]
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: ["b c"]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Lt}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists, values: [b]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [A]}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: a, operator: Exists}]}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}}
spec.affinity {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {}}}
spec.affinity {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: a, operator: In, values: ["b c"]}]}}]}}
spec.affinity {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101}]}}
spec.affinity {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}
spec.affinity {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: ""}]}}
spec.affinity {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaces: [A]}]}}
spec.affinity {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, matchLabelKeys: [a], mismatchLabelKeys: [a], labelSelector: {}}]}}
spec.affinity {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchLabels: {a: "b c"}}}]}}
spec.affinity {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaceSelector: {matchExpressions: [{key: a, operator: DoesNotExist, values: [b]}]}}]}}
spec.affinity {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, podAffinityTerm: {topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: NotIn, values: [b]}]}}}]}}
spec.affinity {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, podAffinityTerm: {topologyKey: a}}]}}
spec.securityContext {windowsOptions: {hostProcess: true}}
spec.securityContext {windowsOptions: {hostProcess: false, runAsUserName: a}}
spec.securityContext {windowsOptions: {runAsUserName: "D\\\\a"}}
spec.securityContext {windowsOptions: {runAsUserName: "D\\\\"}}
spec.securityContext {windowsOptions: {runAsUserName: "a.b\\\\c d"}}
spec.securityContext {windowsOptions: {runAsUserName: "averylongdomainname\\\\c"}}
spec.securityContext {windowsOptions: {runAsUserName: "very.long:domain\\\\c"}}
spec.securityContext {windowsOptions: {runAsUserName: ". ."}}
spec.securityContext {windowsOptions: {runAsUserName: "a@b"}}
spec.securityContext {windowsOptions: {runAsUserName: ""}}
spec.securityContext {windowsOptions: {gmsaCredentialSpec: ""}}
spec.securityContext {windowsOptions: {gmsaCredentialSpecName: A}}
spec.securityContext {seccompProfile: {type: Localhost, localhostProfile: a/b}}
spec.securityContext {seccompProfile: {type: Localhost, localhostProfile: /a}}
spec.securityContext {seccompProfile: {type: Localhost}}
spec.securityContext {seccompProfile: {type: RuntimeDefault, localhostProfile: a}}
spec.securityContext {seccompProfile: {type: Unconfined}}
spec.securityContext {seccompProfile: {}}
spec.securityContext {appArmorProfile: {type: Localhost, localhostProfile: a}}
spec.securityContext {appArmorProfile: {type: Localhost, localhostProfile: " a"}}
spec.securityContext {appArmorProfile: {type: Localhost, localhostProfile: ""}}
spec.securityContext {appArmorProfile: {type: Localhost}}
spec.securityContext {appArmorProfile: {type: Unconfined}}
spec.securityContext {appArmorProfile: {type: RuntimeDefault, localhostProfile: ""}}
spec.securityContext {supplementalGroups: [1, -1]}
spec.securityContext {supplementalGroups: []}
spec.securityContext {supplementalGroups: [null]}
spec.securityContext {sysctls: [{name: net.ipv4.ip_forward, value: "1"}]}
spec.securityContext {sysctls: [{name: net/ipv4/conf/eth0.1/x, value: "1"}]}
spec.securityContext {sysctls: [{name: kernel.shmmax, value: "1"}]}
spec.securityContext {sysctls: [{name: fs.mqueue.a, value: "1"}]}
spec.securityContext {sysctls: [{name: a.b}, {name: a.b}]}
spec.securityContext {sysctls: [{name: A}]}
spec.securityContext {sysctls: [{value: a}]}
spec.securityContext {fsGroup: 1, fsGroupChangePolicy: Always, supplementalGroupsPolicy: Strict, seLinuxChangePolicy: MountOption}
spec.securityContext {fsGroupChangePolicy: ""}
spec.securityContext {seLinuxChangePolicy: X}
spec.securityContext {runAsUser: 2147483648}
spec.resources {limits: {cpu: 1}}
spec.resources {limits: {cpu: 1}, requests: {cpu: 2}}
spec.resources {requests: {cpu: 50m}}
spec.resources {requests: {cpu: 200m, memory: 1Gi}, limits: {memory: 1Gi}}
spec.resources {limits: {memory: 100Mi}}
spec.resources {limits: {hugepages-2Mi: 2Mi, cpu: 1}}
spec.resources {limits: {hugepages-2Mi: 2Mi, cpu: 1}, requests: {hugepages-2Mi: 2Mi}}
spec.resources {limits: {ephemeral-storage: 1}}
spec.resources {limits: {example.com/a: 1}}
spec.resources {claims: []}
spec.resources {claims: [{name: a}]}
spec.resources {}
c.resources {limits: {cpu: 1}, requests: {cpu: 2}}
c.resources {limits: {cpu: 1000m}, requests: {cpu: 1}}
c.resources {limits: {cpu: 1}}
c.resources {requests: {cpu: 100m, memory: 64Mi}}
c.resources {limits: {memory: 128Mi}}
c.resources {limits: {memory: 0.1m}, requests: {memory: 1m}}
c.resources {limits: {memory: 1.1m}, requests: {memory: 2m}}
c.resources {limits: {hugepages-2Mi: 4Mi, cpu: 1}}
c.resources {limits: {hugepages-2Mi: 4Mi}}
c.resources {limits: {hugepages-2Mi: 3Mi, cpu: 1}}
c.resources {limits: {hugepages-2Mi: 0, cpu: 1}}
c.resources {limits: {hugepages-x: 1, cpu: 1}}
c.resources {requests: {hugepages-2Mi: 2Mi, cpu: 1}}
c.resources {limits: {example.com/gpu: 1}}
c.resources {limits: {example.com/gpu: 1}, requests: {example.com/gpu: 2}}
c.resources {requests: {example.com/gpu: 1}}
c.resources {limits: {example.com/gpu: 1500m}}
c.resources {limits: {requests.example.com/a: 1}}
c.resources {limits: {kubernetes.io/a: 1500m}}
c.resources {limits: {pods: 1}}
c.resources {limits: {storage: 1}}
c.resources {limits: {"a b": 1}}
c.resources {claims: [{name: a}]}
c.resources {limits: {cpu: 9223372036854775807}, requests: {cpu: 9223372036854775808}}
c.resources {limits: {memory: 16Ei}, requests: {memory: 17Ei}}
c.resources {limits: {memory: 1E}, requests: {memory: 1Ei}}
c.resources {limits: {cpu: k}, requests: {cpu: Mi}}
c.resources {limits: {cpu: Ei}}
c.resources {limits: {cpu: +}}
c.resources {limits: {cpu: "1e4294967296"}, requests: {cpu: 1}}
c.resources {limits: {cpu: "1e-3"}, requests: {cpu: 1m}}
c.resources {limits: {cpu: null}}
c.resources {limits: {cpu: ' 1 '}}
c.resources {limits: {cpu: "1\\t"}}
c.resizePolicy [{resourceName: cpu, restartPolicy: NotRequired}]
c.resizePolicy [{resourceName: cpu, restartPolicy: RestartContainer}]
c.resizePolicy [{resourceName: cpu, restartPolicy: NotRequired}, {resourceName: cpu, restartPolicy: NotRequired}]
c.resizePolicy [{resourceName: disk, restartPolicy: NotRequired}]
c.resizePolicy [{resourceName: memory}]
c.restartPolicy Always
c.restartPolicy X
c.restartPolicyRules [{action: Restart, exitCodes: {operator: In, values: [1]}}]
c.restartPolicyRules [{action: RestartAllContainers, exitCodes: {operator: NotIn}}]
c.restartPolicyRules [{action: Restart}]
c.restartPolicyRules [{action: X, exitCodes: {operator: X}}]
c.ports [{containerPort: 80, name: http}, {containerPort: 81, name: http}]
c.ports [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]
c.ports [{containerPort: 80, hostPort: 80}, {containerPort: 80, hostPort: 80, protocol: UDP}]
c.ports [{containerPort: 80, hostPort: 80, hostIP: 1.1.1.1}, {containerPort: 80, hostPort: 80}]
c.ports [{containerPort: 80}, {containerPort: 80}]
c.ports [{containerPort: 80, hostPort: 65536}]
c.ports [{containerPort: 80, name: "80"}]
c.ports [{containerPort: 80, name: a--b}]
c.ports [{containerPort: 80, protocol: tcp}]
c.ports [{hostPort: 80}]
c.env [{name: "A=B", value: a}]
c.env [{name: "A B", value: a}]
c.env [{name: "1", value: "1"}]
c.env [{name: "é", value: "1"}]
c.env [{value: a}]
c.env [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
c.env [{name: A, valueFrom: {}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a']"}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['A.b/C']"}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['a b']"}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['']"}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels"}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: spec.host}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIPs, apiVersion: v1}}}]
c.env [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v2}}}]
c.env [{name: A, valueFrom: {fieldRef: {}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1000m}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: +1}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1."}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1.0"}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "1e-3"}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: "10e-1"}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1024}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1024Ki}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1000}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "1e3"}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: "1000e0"}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 01}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 0.001k}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 0.0009765625Ki}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 8Ki}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi, divisor: 1Mi}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi, divisor: 3}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {resource: limits.foo}}}]
c.env [{name: A, valueFrom: {resourceFieldRef: {}}}]
c.env [{name: A, valueFrom: {fileKeyRef: {key: A, volumeName: v, path: a}}}]
c.env [{name: A, valueFrom: {fileKeyRef: {key: A, volumeName: v, path: a/../b}}}]
c.env [{name: A, valueFrom: {fileKeyRef: {key: A, volumeName: w, path: a}}}]
c.env [{name: A, valueFrom: {fileKeyRef: {}}}]
c.env [{name: A, valueFrom: {secretKeyRef: {name: a, key: b}}}]
c.env [{name: A, valueFrom: {configMapKeyRef: {key: b, optional: true}}}]
c.envFrom [{configMapRef: {name: a}}]
c.envFrom [{prefix: a}]
c.envFrom []
c.volumeDevices [{name: v, devicePath: /a}]
c.volumeMounts [{name: v, mountPath: /a}, {name: v, mountPath: /a}]
c.volumeMounts [{name: v, mountPath: /a, subPath: a/../b}]
c.volumeMounts [{name: v, mountPath: /a, subPath: /a}]
c.volumeMounts [{name: v, mountPath: /a, subPath: a, subPathExpr: b}]
c.volumeMounts [{name: v, mountPath: /a, subPathExpr: $(A)}]
c.volumeMounts [{name: v, mountPath: /a, mountPropagation: Bidirectional}]
c.volumeMounts [{name: v, mountPath: /a, mountPropagation: HostToContainer}]
c.volumeMounts [{name: v, mountPath: /a, mountPropagation: ""}]
c.volumeMounts [{name: v, mountPath: /a, recursiveReadOnly: Enabled}]
c.volumeMounts [{name: v, mountPath: /a, recursiveReadOnly: Enabled, readOnly: true}]
c.volumeMounts [{name: v, mountPath: /a, recursiveReadOnly: IfPossible, readOnly: true, mountPropagation: HostToContainer}]
c.volumeMounts [{name: v, mountPath: /a, recursiveReadOnly: X}]
c.volumeMounts [{name: v, mountPath: /a, bindMountOptions: [noexec]}]
c.volumeMounts [{name: v, mountPath: /a, bindMountOptions: [noexec, noexec]}]
c.volumeMounts [{name: v, mountPath: /a, bindMountOptions: [exec]}]
c.volumeMounts [{name: w, mountPath: /a}]
c.volumeMounts [{name: v}]
c.volumeMounts [{mountPath: /a}]
c.imagePullPolicy never
c.terminationMessagePolicy X
c.image " a"
c.image "a\\u0085"
c.image "\\uFEFFa"
c.image " "
c.name A
c.name x
c.securityContext {privileged: true}
c.securityContext {privileged: true, allowPrivilegeEscalation: false}
c.securityContext {allowPrivilegeEscalation: false, capabilities: {add: [CAP_SYS_ADMIN]}}
c.securityContext {allowPrivilegeEscalation: false, capabilities: {add: [SYS_ADMIN]}}
c.securityContext {procMount: Unmasked}
c.securityContext {procMount: ""}
c.securityContext {runAsUser: -1}
c.securityContext {windowsOptions: {hostProcess: true}}
c.securityContext {windowsOptions: {hostProcess: false}}
c.securityContext {seccompProfile: {type: Localhost, localhostProfile: a}}
c.securityContext {seccompProfile: {type: RuntimeDefault}}
c.securityContext {appArmorProfile: {type: Localhost, localhostProfile: a}}
c.securityContext {appArmorProfile: {type: RuntimeDefault}}
c.securityContext {appArmorProfile: {type: X}}
c.lifecycle {preStop: {sleep: {seconds: 30}}}
c.lifecycle {preStop: {sleep: {seconds: 31}}}
c.lifecycle {preStop: {sleep: {seconds: 2}}}
c.lifecycle {preStop: {}}
c.lifecycle {postStart: {exec: {command: [a]}, httpGet: {port: 1}}}
c.lifecycle {postStart: {exec: {}}}
c.lifecycle {postStart: {tcpSocket: {port: http}}}
c.lifecycle {stopSignal: SIGTERM}
c.lifecycle {stopSignal: SIGHUP}
c.lifecycle {stopSignal: SIGRTMAX-15}
c.lifecycle {stopSignal: SIGRTMIN+15}
c.livenessProbe {httpGet: {port: 0}}
c.livenessProbe {httpGet: {port: "80"}}
c.livenessProbe {httpGet: {port: http, scheme: https}}
c.livenessProbe {httpGet: {port: 1, protocol: HTTP2}}
c.livenessProbe {httpGet: {port: 1, protocol: HTTP2, host: a}}
c.livenessProbe {httpGet: {port: 1, protocol: HTTP2, scheme: HTTPS}}
c.livenessProbe {httpGet: {port: 1, protocol: X}}
c.livenessProbe {httpGet: {port: 1, httpHeaders: [{name: "A B"}]}}
c.livenessProbe {grpc: {port: 1, mode: TLS}}
c.livenessProbe {grpc: {port: 0}}
c.livenessProbe {grpc: {port: 1, mode: X}}
c.livenessProbe {exec: {command: []}}
c.livenessProbe {}
c.livenessProbe {tcpSocket: {port: 1}, successThreshold: 2}
c.livenessProbe {tcpSocket: {port: 1}, timeoutSeconds: -1}
c.livenessProbe {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 0}
c.livenessProbe {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 1}
c.readinessProbe {tcpSocket: {port: 1}, successThreshold: 2}
c.readinessProbe {tcpSocket: {port: 1}, terminationGracePeriodSeconds: 1}
c.startupProbe {tcpSocket: {port: 1}, successThreshold: -1}
i.name main
i.name ""
i.image ""
i.restartPolicy Always
i.restartPolicy Never
i.restartPolicyRules [{action: Restart, exitCodes: {operator: In, values: [1]}}]
i.livenessProbe {tcpSocket: {port: 1}}
i.livenessProbe {}
i.lifecycle {preStop: {sleep: {seconds: 1}}}
i.resizePolicy [{resourceName: cpu, restartPolicy: RestartContainer}]
i.resizePolicy [{resourceName: cpu, restartPolicy: NotRequired}]
i.ports [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]
i.ports [{containerPort: 80, hostPort: 81}]
i.resources {requests: {cpu: 100m}}
i.resources {limits: {cpu: 2, memory: 200Mi}}
i.resources {limits: {hugepages-2Mi: 4Mi, cpu: 1}}
i.volumeMounts [{name: w, mountPath: /a}]
v.hostPath {path: /a, type: Socket}
v.hostPath {path: /a/../b}
v.hostPath {path: /a, type: X}
v.hostPath {}
v.emptyDir {sizeLimit: -1}
v.emptyDir {sizeLimit: 1Gi, medium: X, mode: 1023}
v.emptyDir {mode: 1024}
v.emptyDir {mode: 01777}
v.emptyDir null
v.gitRepo {repository: a, directory: ../b}
v.gitRepo {repository: a}
v.gcePersistentDisk {pdName: a, partition: 255}
v.gcePersistentDisk {pdName: a, partition: 256}
v.awsElasticBlockStore {volumeID: a, partition: -1}
v.nfs {server: a, path: /a}
v.nfs {server: a, path: a}
v.iscsi {targetPortal: a, iqn: "iqn.2015-02.example.com:test", lun: 0}
v.iscsi {targetPortal: a, iqn: "iqn.2015-02.example.com", lun: 0}
v.iscsi {targetPortal: a, iqn: "iqnx iqn.2015-02.example.com:test", lun: 0}
v.iscsi {targetPortal: a, iqn: eui.0123456789abcdef, lun: 256}
v.iscsi {targetPortal: a, iqn: eui.0123456789abcdef, initiatorName: naa.0123456789abcdef0123456789abcdef}
v.iscsi {targetPortal: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, iqn: eui.0123456789abcdef, initiatorName: eui.0123456789abcdef}
v.iscsi {targetPortal: a, iqn: eui.0123456789abcdef, chapAuthSession: true}
v.iscsi {targetPortal: a, iqn: eui.0123456789abcdef, chapAuthSession: true, secretRef: {}}
v.iscsi {targetPortal: a, iqn: eui.0123456789abcdef, secretRef: {name: a}}
v.flocker {datasetName: a}
v.flocker {datasetName: a/b}
v.flocker {datasetName: a, datasetUUID: b}
v.rbd {monitors: [a], image: a}
v.rbd {monitors: [a], image: a, secretRef: {name: s}}
v.rbd {image: a}
v.cephfs {monitors: [a]}
v.cephfs {monitors: [a], secretRef: {}}
v.cinder {volumeID: a}
v.cinder {volumeID: a, secretRef: {}}
v.quobyte {registry: "a:1,b:2", volume: a}
v.quobyte {registry: "a", volume: a}
v.quobyte {registry: "[::1]:2", volume: a}
v.quobyte {registry: "[::1]", volume: a}
v.quobyte {registry: "::1:2", volume: a}
v.quobyte {registry: "a:1:2,", volume: a}
v.quobyte {registry: "a]:1", volume: a}
v.quobyte {registry: ":", volume: a}
v.downwardAPI {items: [{path: a, fieldRef: {fieldPath: metadata.labels}}]}
v.downwardAPI {items: [{path: a, fieldRef: {fieldPath: status.podIP}}]}
v.downwardAPI {items: [{path: a, resourceFieldRef: {containerName: main, resource: limits.cpu}}]}
v.downwardAPI {items: [{path: a, resourceFieldRef: {resource: limits.cpu}}]}
v.downwardAPI {items: [{path: a}]}
v.downwardAPI {items: [{path: ..a, fieldRef: {fieldPath: metadata.name}}]}
v.downwardAPI {items: [{path: a, fieldRef: {fieldPath: metadata.name}, mode: 0777, user: 1}]}
v.downwardAPI {items: [{path: a, fieldRef: {fieldPath: metadata.name}, mode: 01000}]}
v.downwardAPI {defaultMode: 512}
v.downwardAPI {defaultMode: 511, defaultUser: -1}
v.downwardAPI {}
v.fc {targetWWNs: [a], lun: 1}
v.fc {targetWWNs: [a]}
v.fc {wwids: [a]}
v.fc {wwids: [a], targetWWNs: [b], lun: 1}
v.flexVolume {driver: a, options: {a.kubernetes.io/b: c}}
v.flexVolume {driver: a, options: {K8s.io: c}}
v.flexVolume {driver: a, options: {a/k8s.io: c}}
v.flexVolume {driver: a, secretRef: {name: a}}
v.vsphereVolume {volumePath: a}
v.photonPersistentDisk {pdID: a}
v.portworxVolume {volumeID: a}
v.scaleIO {gateway: a, system: b, volumeName: c}
v.scaleIO {gateway: a, system: b, volumeName: c, secretRef: {name: d}}
v.azureDisk {diskName: a, diskURI: "https://a"}
v.azureDisk {diskName: a, diskURI: /subscriptions/a}
v.azureDisk {diskName: a, diskURI: /subscriptions/a, kind: Managed}
v.azureDisk {diskName: a, diskURI: "https://a", cachingMode: X}
v.azureDisk {diskName: a, diskURI: "https://a", kind: ""}
v.storageos {volumeName: a}
v.storageos {volumeName: A}
v.storageos {volumeName: a, volumeNamespace: b.c}
v.storageos {volumeName: a, secretRef: {name: b}}
v.projected {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}
v.projected {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}, {downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}
v.projected {sources: [{downwardAPI: {}, secret: {name: a}}]}
v.projected {sources: [{}]}
v.projected {sources: [null]}
v.projected {sources: []}
v.projected {sources: [{serviceAccountToken: {path: a}}]}
v.projected {sources: [{secret: {name: ""}}]}
v.projected {defaultMode: -1}
v.image {reference: a, pullPolicy: X}
v.image {reference: a}
v.image {}
v.secret {secretName: a}
v.configMap {name: a}
v.csi {driver: a}
v.ephemeral {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1}}}}}
v.persistentVolumeClaim {claimName: a}
v.glusterfs {endpoints: a, path: b}
v.azureFile {secretName: a, shareName: b}
metadata.generateName a-
metadata.generateName A
metadata.generateName -
metadata.generation -1
metadata.creationTimestamp null
metadata.creationTimestamp 2006-01-02T15:04:05Z
metadata.creationTimestamp 2006-01-02
metadata.creationTimestamp 2006-01-02T5:04:05,5+24:59
metadata.creationTimestamp 2006-02-29T15:04:05Z
metadata.creationTimestamp 2006-01-02T24:00:00Z
metadata.deletionTimestamp 2006-01-02T15:04:05Z
metadata.labels {a: "b c"}
metadata.labels {a/b/c: d}
metadata.labels {A/b: d}
metadata.labels {a.b/: d}
metadata.labels {1: d, 1.5: e, 1000000.0: f, 1e21: g, true: h, 0.00001: i}
metadata.finalizers [a/b, orphan, kubernetes]
metadata.finalizers [orphan, foregroundDeletion]
metadata.finalizers [a]
metadata.ownerReferences [{apiVersion: v1, kind: Node, name: a, uid: b}]
metadata.ownerReferences [{apiVersion: v1, kind: Event, name: a, uid: b}]
metadata.ownerReferences [{apiVersion: /v1, kind: Event, name: a, uid: b}]
metadata.ownerReferences [{apiVersion: a/, kind: Node, name: a, uid: b}]
metadata.ownerReferences [{apiVersion: a/b/c, kind: Node, name: a, uid: b}]
metadata.ownerReferences [{apiVersion: v1, kind: A, name: a, uid: b, controller: true}, {apiVersion: v1, kind: B, name: a, uid: b, controller: true}]
metadata.managedFields [{operation: Apply, manager: a, fieldsType: FieldsV1, fieldsV1: {f: {}}, time: "2006-01-02T15:04:05Z"}]
metadata.managedFields [{operation: X}]
metadata.managedFields [{operation: Update, manager: "a\\tb"}]
metadata.managedFields [{operation: Update, fieldsType: X}]
metadata.managedFields [{operation: Update, fieldsV1: 1}]
metadata.annotations {kubernetes.io/config.mirror: ""}
metadata.annotations {kubernetes.io/config.hash: x, kubernetes.io/config.source: api}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '[{"key":"a","operator":"Exists"}]'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '[{"KEY":"a b","operator":"Exists"}]'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '[{"key":1}]'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '[{"Key":"a","Effect":"NoExecute","tolerationSeconds":1}, null]'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '[{"Key":"a","tolerationSeconds":"1"}]'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: '{}'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: 'null'}
metadata.annotations {scheduler.alpha.kubernetes.io/tolerations: 'x'}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: "-1"}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: "+1"}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: "01"}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: "2147483648"}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: "-01"}
metadata.annotations {controller.kubernetes.io/pod-deletion-cost: ""}
metadata.annotations {seccomp.security.alpha.kubernetes.io/pod: localhost/a/b}
metadata.annotations {seccomp.security.alpha.kubernetes.io/pod: docker/default}
metadata.annotations {seccomp.security.alpha.kubernetes.io/pod: x}
metadata.annotations {container.seccomp.security.alpha.kubernetes.io/main: localhost/a}
metadata.annotations {container.seccomp.security.alpha.kubernetes.io/main: unconfined}
metadata.annotations {container.seccomp.security.alpha.kubernetes.io/other: /a}
metadata.annotations {container.apparmor.security.beta.kubernetes.io/main: localhost/a}
metadata.annotations {container.apparmor.security.beta.kubernetes.io/main: runtime/default}
metadata.annotations {container.apparmor.security.beta.kubernetes.io/main: x}
metadata.annotations {container.apparmor.security.beta.kubernetes.io/other: ""}
metadata.annotations {"A.B/C": d}
metadata.annotations {"a b": d}
metadata.uid 1
metadata.uid "1"
status {phase: X, startTime: null, podIP: x, conditions: [{type: Ready}]}
status {startTime: x}
status {containerStatuses: [{restartCount: 1.5}]}
status []
`
  .trim()
  .split("\n")
  .map((line) => {
    const space = line.indexOf(" ");
    return [line.slice(0, space), line.slice(space + 1)] as const;
  });

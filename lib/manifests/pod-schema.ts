/**
 * The JSON shape of core/v1 Pod in Kubernetes v1.37.2, one line a struct: its name, then each field with its type. `*` is
 * a pointer (null unsets it), `[]` a slice, `{}` a map from texts, `@` a type that reads its JSON itself. Written by
 * `kubelet-server --schema` (test/kubelet), which reads it off the kubelet's own Go types.
 */
export const podSchema = `
Pod kind:string apiVersion:string metadata:ObjectMeta spec:PodSpec status:PodStatus
ObjectMeta name:string generateName:string namespace:string selfLink:string uid:string resourceVersion:string generation:int64 creationTimestamp:@Time deletionTimestamp:*@Time deletionGracePeriodSeconds:*int64 labels:{}string annotations:{}string ownerReferences:[]OwnerReference finalizers:[]string managedFields:[]ManagedFieldsEntry
PodSpec volumes:[]Volume initContainers:[]Container containers:[]Container ephemeralContainers:[]EphemeralContainer restartPolicy:string terminationGracePeriodSeconds:*int64 activeDeadlineSeconds:*int64 dnsPolicy:string nodeSelector:{}string serviceAccountName:string serviceAccount:string automountServiceAccountToken:*bool nodeName:string hostNetwork:bool hostPID:bool hostIPC:bool shareProcessNamespace:*bool securityContext:*PodSecurityContext imagePullSecrets:[]LocalObjectReference hostname:string subdomain:string affinity:*Affinity schedulerName:string tolerations:[]Toleration hostAliases:[]HostAlias priorityClassName:string priority:*int32 dnsConfig:*PodDNSConfig readinessGates:[]PodReadinessGate runtimeClassName:*string enableServiceLinks:*bool preemptionPolicy:*string overhead:{}@Quantity topologySpreadConstraints:[]TopologySpreadConstraint setHostnameAsFQDN:*bool os:*PodOS hostUsers:*bool schedulingGates:[]PodSchedulingGate resourceClaims:[]PodResourceClaim resources:*ResourceRequirements hostnameOverride:*string schedulingGroup:*PodSchedulingGroup evictionResponders:[]EvictionResponder
PodStatus observedGeneration:int64 phase:string conditions:[]PodCondition message:string reason:string nominatedNodeName:string hostIP:string hostIPs:[]HostIP podIP:string podIPs:[]PodIP startTime:*@Time initContainerStatuses:[]ContainerStatus containerStatuses:[]ContainerStatus qosClass:string ephemeralContainerStatuses:[]ContainerStatus resize:string resourceClaimStatuses:[]PodResourceClaimStatus extendedResourceClaimStatus:*PodExtendedResourceClaimStatus allocatedResources:{}@Quantity resources:*ResourceRequirements nodeAllocatableResourceClaimStatuses:[]NodeAllocatableResourceClaimStatus volumeHealth:[]PodVolumeHealth
OwnerReference apiVersion:string kind:string name:string uid:string controller:*bool blockOwnerDeletion:*bool
ManagedFieldsEntry manager:string operation:string apiVersion:string time:*@Time fieldsType:string fieldsV1:*@FieldsV1 subresource:string
Volume name:string hostPath:*HostPathVolumeSource emptyDir:*EmptyDirVolumeSource gcePersistentDisk:*GCEPersistentDiskVolumeSource awsElasticBlockStore:*AWSElasticBlockStoreVolumeSource gitRepo:*GitRepoVolumeSource secret:*SecretVolumeSource nfs:*NFSVolumeSource iscsi:*ISCSIVolumeSource glusterfs:*GlusterfsVolumeSource persistentVolumeClaim:*PersistentVolumeClaimVolumeSource rbd:*RBDVolumeSource flexVolume:*FlexVolumeSource cinder:*CinderVolumeSource cephfs:*CephFSVolumeSource flocker:*FlockerVolumeSource downwardAPI:*DownwardAPIVolumeSource fc:*FCVolumeSource azureFile:*AzureFileVolumeSource configMap:*ConfigMapVolumeSource vsphereVolume:*VsphereVirtualDiskVolumeSource quobyte:*QuobyteVolumeSource azureDisk:*AzureDiskVolumeSource photonPersistentDisk:*PhotonPersistentDiskVolumeSource projected:*ProjectedVolumeSource portworxVolume:*PortworxVolumeSource scaleIO:*ScaleIOVolumeSource storageos:*StorageOSVolumeSource csi:*CSIVolumeSource ephemeral:*EphemeralVolumeSource image:*ImageVolumeSource
Container name:string image:string command:[]string args:[]string workingDir:string ports:[]ContainerPort envFrom:[]EnvFromSource env:[]EnvVar resources:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy:*string restartPolicyRules:[]ContainerRestartRule volumeMounts:[]VolumeMount volumeDevices:[]VolumeDevice livenessProbe:*Probe readinessProbe:*Probe startupProbe:*Probe lifecycle:*Lifecycle terminationMessagePath:string terminationMessagePolicy:string imagePullPolicy:string securityContext:*SecurityContext stdin:bool stdinOnce:bool tty:bool
EphemeralContainer name:string image:string command:[]string args:[]string workingDir:string ports:[]ContainerPort envFrom:[]EnvFromSource env:[]EnvVar resources:ResourceRequirements resizePolicy:[]ContainerResizePolicy restartPolicy:*string restartPolicyRules:[]ContainerRestartRule volumeMounts:[]VolumeMount volumeDevices:[]VolumeDevice livenessProbe:*Probe readinessProbe:*Probe startupProbe:*Probe lifecycle:*Lifecycle terminationMessagePath:string terminationMessagePolicy:string imagePullPolicy:string securityContext:*SecurityContext stdin:bool stdinOnce:bool tty:bool targetContainerName:string
PodSecurityContext seLinuxOptions:*SELinuxOptions windowsOptions:*WindowsSecurityContextOptions runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool supplementalGroups:[]int64 supplementalGroupsPolicy:*string fsGroup:*int64 sysctls:[]Sysctl fsGroupChangePolicy:*string seccompProfile:*SeccompProfile appArmorProfile:*AppArmorProfile seLinuxChangePolicy:*string
LocalObjectReference name:string
Affinity nodeAffinity:*NodeAffinity podAffinity:*PodAffinity podAntiAffinity:*PodAntiAffinity
Toleration key:string operator:string value:string effect:string tolerationSeconds:*int64
HostAlias ip:string hostnames:[]string
PodDNSConfig nameservers:[]string searches:[]string options:[]PodDNSConfigOption
PodReadinessGate conditionType:string
TopologySpreadConstraint maxSkew:int32 topologyKey:string whenUnsatisfiable:string labelSelector:*LabelSelector minDomains:*int32 nodeAffinityPolicy:*string nodeTaintsPolicy:*string matchLabelKeys:[]string
PodOS name:string
PodSchedulingGate name:string
PodResourceClaim name:string resourceClaimName:*string resourceClaimTemplateName:*string
ResourceRequirements limits:{}@Quantity requests:{}@Quantity claims:[]ResourceClaim
PodSchedulingGroup podGroupName:*string
EvictionResponder name:string priority:*int32
PodCondition type:string observedGeneration:int64 status:string lastProbeTime:@Time lastTransitionTime:@Time reason:string message:string
HostIP ip:string
PodIP ip:string
ContainerStatus name:string state:ContainerState lastState:ContainerState ready:bool restartCount:int32 image:string imageID:string containerID:string started:*bool allocatedResources:{}@Quantity resources:*ResourceRequirements volumeMounts:[]VolumeMountStatus user:*ContainerUser allocatedResourcesStatus:[]ResourceStatus stopSignal:*string
PodResourceClaimStatus name:string resourceClaimName:*string
PodExtendedResourceClaimStatus requestMappings:[]ContainerExtendedResourceRequest resourceClaimName:string
NodeAllocatableResourceClaimStatus resourceClaimName:string containers:[]string mapping:[]NodeAllocatableMappedResources overhead:[]NodeAllocatableOverheadResources
PodVolumeHealth name:string healthConditions:[]VolumeHealthCondition lastTransitionTime:@Time
HostPathVolumeSource path:string type:*string
EmptyDirVolumeSource medium:string sizeLimit:*@Quantity mode:*int32
GCEPersistentDiskVolumeSource pdName:string fsType:string partition:int32 readOnly:bool
AWSElasticBlockStoreVolumeSource volumeID:string fsType:string partition:int32 readOnly:bool
GitRepoVolumeSource repository:string revision:string directory:string
SecretVolumeSource secretName:string items:[]KeyToPath defaultMode:*int32 optional:*bool defaultUser:*int64
NFSVolumeSource server:string path:string readOnly:bool
ISCSIVolumeSource targetPortal:string iqn:string lun:int32 iscsiInterface:string fsType:string readOnly:bool portals:[]string chapAuthDiscovery:bool chapAuthSession:bool secretRef:*LocalObjectReference initiatorName:*string
GlusterfsVolumeSource endpoints:string path:string readOnly:bool
PersistentVolumeClaimVolumeSource claimName:string readOnly:bool
RBDVolumeSource monitors:[]string image:string fsType:string pool:string user:string keyring:string secretRef:*LocalObjectReference readOnly:bool
FlexVolumeSource driver:string fsType:string secretRef:*LocalObjectReference readOnly:bool options:{}string
CinderVolumeSource volumeID:string fsType:string readOnly:bool secretRef:*LocalObjectReference
CephFSVolumeSource monitors:[]string path:string user:string secretFile:string secretRef:*LocalObjectReference readOnly:bool
FlockerVolumeSource datasetName:string datasetUUID:string
DownwardAPIVolumeSource items:[]DownwardAPIVolumeFile defaultMode:*int32 defaultUser:*int64
FCVolumeSource targetWWNs:[]string lun:*int32 fsType:string readOnly:bool wwids:[]string
AzureFileVolumeSource secretName:string shareName:string readOnly:bool
ConfigMapVolumeSource name:string items:[]KeyToPath defaultMode:*int32 optional:*bool defaultUser:*int64
VsphereVirtualDiskVolumeSource volumePath:string fsType:string storagePolicyName:string storagePolicyID:string
QuobyteVolumeSource registry:string volume:string readOnly:bool user:string group:string tenant:string
AzureDiskVolumeSource diskName:string diskURI:string cachingMode:*string fsType:*string readOnly:*bool kind:*string
PhotonPersistentDiskVolumeSource pdID:string fsType:string
ProjectedVolumeSource sources:[]VolumeProjection defaultMode:*int32 defaultUser:*int64
PortworxVolumeSource volumeID:string fsType:string readOnly:bool
ScaleIOVolumeSource gateway:string system:string secretRef:*LocalObjectReference sslEnabled:bool protectionDomain:string storagePool:string storageMode:string volumeName:string fsType:string readOnly:bool
StorageOSVolumeSource volumeName:string volumeNamespace:string fsType:string readOnly:bool secretRef:*LocalObjectReference
CSIVolumeSource driver:string readOnly:*bool fsType:*string volumeAttributes:{}string nodePublishSecretRef:*LocalObjectReference
EphemeralVolumeSource volumeClaimTemplate:*PersistentVolumeClaimTemplate
ImageVolumeSource reference:string pullPolicy:string
ContainerPort name:string hostPort:int32 containerPort:int32 protocol:string hostIP:string
EnvFromSource prefix:string configMapRef:*ConfigMapEnvSource secretRef:*SecretEnvSource
EnvVar name:string value:string valueFrom:*EnvVarSource
ContainerResizePolicy resourceName:string restartPolicy:string
ContainerRestartRule action:string exitCodes:*ContainerRestartRuleOnExitCodes
VolumeMount name:string readOnly:bool recursiveReadOnly:*string mountPath:string subPath:string mountPropagation:*string subPathExpr:string bindMountOptions:[]string
VolumeDevice name:string devicePath:string
Probe exec:*ExecAction httpGet:*HTTPGetAction tcpSocket:*TCPSocketAction grpc:*GRPCAction initialDelaySeconds:int32 timeoutSeconds:int32 periodSeconds:int32 successThreshold:int32 failureThreshold:int32 terminationGracePeriodSeconds:*int64
Lifecycle postStart:*LifecycleHandler preStop:*LifecycleHandler stopSignal:*string
SecurityContext capabilities:*Capabilities privileged:*bool seLinuxOptions:*SELinuxOptions windowsOptions:*WindowsSecurityContextOptions runAsUser:*int64 runAsGroup:*int64 runAsNonRoot:*bool readOnlyRootFilesystem:*bool allowPrivilegeEscalation:*bool procMount:*string seccompProfile:*SeccompProfile appArmorProfile:*AppArmorProfile
SELinuxOptions user:string role:string type:string level:string
WindowsSecurityContextOptions gmsaCredentialSpecName:*string gmsaCredentialSpec:*string runAsUserName:*string hostProcess:*bool
Sysctl name:string value:string
SeccompProfile type:string localhostProfile:*string
AppArmorProfile type:string localhostProfile:*string
NodeAffinity requiredDuringSchedulingIgnoredDuringExecution:*NodeSelector preferredDuringSchedulingIgnoredDuringExecution:[]PreferredSchedulingTerm
PodAffinity requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodAntiAffinity requiredDuringSchedulingIgnoredDuringExecution:[]PodAffinityTerm preferredDuringSchedulingIgnoredDuringExecution:[]WeightedPodAffinityTerm
PodDNSConfigOption name:string value:*string
LabelSelector matchLabels:{}string matchExpressions:[]LabelSelectorRequirement
ResourceClaim name:string request:string
ContainerState waiting:*ContainerStateWaiting running:*ContainerStateRunning terminated:*ContainerStateTerminated
VolumeMountStatus name:string mountPath:string readOnly:bool recursiveReadOnly:*string volumeStatus:*VolumeStatus
ContainerUser linux:*LinuxContainerUser
ResourceStatus name:string resources:[]ResourceHealth
ContainerExtendedResourceRequest containerName:string resourceName:string requestName:string
NodeAllocatableMappedResources name:string quantity:*@Quantity
NodeAllocatableOverheadResources name:string perPod:*@Quantity perContainer:*@Quantity
VolumeHealthCondition status:string reason:string message:string
KeyToPath key:string path:string mode:*int32 user:*int64
DownwardAPIVolumeFile path:string fieldRef:*ObjectFieldSelector resourceFieldRef:*ResourceFieldSelector mode:*int32 user:*int64
VolumeProjection secret:*SecretProjection downwardAPI:*DownwardAPIProjection configMap:*ConfigMapProjection serviceAccountToken:*ServiceAccountTokenProjection clusterTrustBundle:*ClusterTrustBundleProjection podCertificate:*PodCertificateProjection
PersistentVolumeClaimTemplate metadata:ObjectMeta spec:PersistentVolumeClaimSpec
ConfigMapEnvSource name:string optional:*bool
SecretEnvSource name:string optional:*bool
EnvVarSource fieldRef:*ObjectFieldSelector resourceFieldRef:*ResourceFieldSelector configMapKeyRef:*ConfigMapKeySelector secretKeyRef:*SecretKeySelector fileKeyRef:*FileKeySelector
ContainerRestartRuleOnExitCodes operator:string values:[]int32
ExecAction command:[]string
HTTPGetAction path:string port:@IntOrString host:string scheme:string httpHeaders:[]HTTPHeader protocol:*string
TCPSocketAction port:@IntOrString host:string
GRPCAction port:int32 service:*string mode:*string
LifecycleHandler exec:*ExecAction httpGet:*HTTPGetAction tcpSocket:*TCPSocketAction sleep:*SleepAction
Capabilities add:[]string drop:[]string
NodeSelector nodeSelectorTerms:[]NodeSelectorTerm
PreferredSchedulingTerm weight:int32 preference:NodeSelectorTerm
PodAffinityTerm labelSelector:*LabelSelector namespaces:[]string topologyKey:string namespaceSelector:*LabelSelector matchLabelKeys:[]string mismatchLabelKeys:[]string
WeightedPodAffinityTerm weight:int32 podAffinityTerm:PodAffinityTerm
LabelSelectorRequirement key:string operator:string values:[]string
ContainerStateWaiting reason:string message:string
ContainerStateRunning startedAt:@Time
ContainerStateTerminated exitCode:int32 signal:int32 reason:string message:string startedAt:@Time finishedAt:@Time containerID:string
VolumeStatus image:*ImageVolumeStatus
LinuxContainerUser uid:int64 gid:int64 supplementalGroups:[]int64
ResourceHealth resourceID:string health:string message:*string
ObjectFieldSelector apiVersion:string fieldPath:string
ResourceFieldSelector containerName:string resource:string divisor:@Quantity
SecretProjection name:string items:[]KeyToPath optional:*bool
DownwardAPIProjection items:[]DownwardAPIVolumeFile
ConfigMapProjection name:string items:[]KeyToPath optional:*bool
ServiceAccountTokenProjection audience:string expirationSeconds:*int64 path:string user:*int64
ClusterTrustBundleProjection name:*string signerName:*string labelSelector:*LabelSelector optional:*bool path:string user:*int64
PodCertificateProjection signerName:string keyType:string maxExpirationSeconds:*int32 credentialBundlePath:string keyPath:string certificateChainPath:string userAnnotations:{}string user:*int64
PersistentVolumeClaimSpec accessModes:[]string selector:*LabelSelector resources:VolumeResourceRequirements volumeName:string storageClassName:*string volumeMode:*string dataSource:*TypedLocalObjectReference dataSourceRef:*TypedObjectReference volumeAttributesClassName:*string
ConfigMapKeySelector name:string key:string optional:*bool
SecretKeySelector name:string key:string optional:*bool
FileKeySelector volumeName:string path:string key:string optional:*bool
HTTPHeader name:string value:string
SleepAction seconds:int64
NodeSelectorTerm matchExpressions:[]NodeSelectorRequirement matchFields:[]NodeSelectorRequirement
ImageVolumeStatus imageRef:string
VolumeResourceRequirements limits:{}@Quantity requests:{}@Quantity
TypedLocalObjectReference apiGroup:*string kind:string name:string
TypedObjectReference apiGroup:*string kind:string name:string namespace:*string
NodeSelectorRequirement key:string operator:string values:[]string
`;

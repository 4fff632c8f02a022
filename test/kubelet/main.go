// kubelet-server serves the kubelet's own Pods API server (k8s.io/kubernetes
// pkg/kubelet/apis/pods and pkg/kubelet/server.ListenAndServePodsServer) on a
// unix socket, backed by the kubelet's own pod manager, status manager and,
// with --manifests, its own static-pod file source. It is a test fixture.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"k8s.io/kubernetes/pkg/capabilities"
	podsapi "k8s.io/kubernetes/pkg/kubelet/apis/pods"
	"k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/metrics"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/server"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// podSpec is one entry of --pods-json (or of a control POST /pods).
type podSpec struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace,omitempty"`  // default "default"
	UID         string            `json:"uid,omitempty"`        // default generated
	Source      string            `json:"source,omitempty"`     // api (default) | file | http
	Mirror      bool              `json:"mirror,omitempty"`     // adds kubernetes.io/config.mirror
	Phase       string            `json:"phase,omitempty"`      // default Running
	Ready       *bool             `json:"ready,omitempty"`      // default phase==Running
	NoStatus    bool              `json:"noStatus,omitempty"`   // status manager has no entry: the fallback path
	Containers  int               `json:"containers,omitempty"` // default 1
	Restarts    int32             `json:"restarts,omitempty"`
	PadBytes    int               `json:"padBytes,omitempty"` // an annotation of that many bytes
	Deleting    bool              `json:"deleting,omitempty"` // deletionTimestamp set
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Raw         *v1.Pod           `json:"raw,omitempty"` // a whole v1.Pod instead
}

type podsFile struct {
	Pods []podSpec `json:"pods"`
}

type noLatency struct{}

func (noLatency) RecordStatusUpdated(klog.Logger, *v1.Pod)           {}
func (noLatency) DeletePodStartupState(types.UID)                    {}
func (noLatency) ObservedPodOnWatch(klog.Logger, *v1.Pod, time.Time) {}

type noDeletionSafety struct{}

func (noDeletionSafety) PodCouldHaveRunningContainers(*v1.Pod) bool { return false }

type harness struct {
	logger   klog.Logger
	node     string
	pods     kubepod.Manager
	statuses status.Manager
	ready    atomic.Bool
	mu       sync.Mutex
	seq      int
}

func (h *harness) build(s podSpec) *v1.Pod {
	h.seq++
	if s.Raw != nil {
		return s.Raw
	}
	if s.Namespace == "" {
		s.Namespace = "default"
	}
	if s.Containers == 0 {
		s.Containers = 1
	}
	src := s.Source
	if src == "" {
		src = kubetypes.ApiserverSource
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	ann := map[string]string{
		kubetypes.ConfigSourceAnnotationKey:    src,
		kubetypes.ConfigFirstSeenAnnotationKey: kubetypes.NewTimestamp().GetString(),
	}
	if s.UID == "" {
		if src == kubetypes.ApiserverSource {
			s.UID = fmt.Sprintf("%08x-0000-4000-8000-%012x", h.seq, h.seq)
		} else {
			s.UID = fmt.Sprintf("%032x", h.seq)
		}
	}
	if src != kubetypes.ApiserverSource {
		ann[kubetypes.ConfigHashAnnotationKey] = s.UID
	}
	if s.Mirror {
		ann[kubetypes.ConfigMirrorAnnotationKey] = s.UID
	}
	if s.PadBytes > 0 {
		ann["example.com/pad"] = strings.Repeat("x", s.PadBytes)
	}
	for k, v := range s.Annotations {
		ann[k] = v
	}
	labels := map[string]string{"app": s.Name}
	for k, v := range s.Labels {
		labels[k] = v
	}
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, UID: types.UID(s.UID), Annotations: ann, Labels: labels},
		Spec: v1.PodSpec{
			NodeName: h.node, RestartPolicy: v1.RestartPolicyAlways, HostNetwork: src != kubetypes.ApiserverSource,
			DNSPolicy: v1.DNSClusterFirst, SchedulerName: "default-scheduler",
		},
	}
	if src == kubetypes.ApiserverSource {
		p.CreationTimestamp = now
		p.ResourceVersion = strconv.Itoa(1000 + h.seq)
		p.Spec.ServiceAccountName = "default"
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: s.Name + "-rs", UID: types.UID(s.UID)}}
		p.Spec.Volumes = []v1.Volume{{Name: "kube-api-access", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{
			{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []v1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
		}}}}}
		p.Spec.Tolerations = []v1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute"}}
	}
	if s.Deleting {
		p.DeletionTimestamp = &now
		g := int64(30)
		p.DeletionGracePeriodSeconds = &g
	}
	for i := 0; i < s.Containers; i++ {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{
			Name: fmt.Sprintf("c%d", i), Image: "registry.example/app:" + strconv.Itoa(i), ImagePullPolicy: v1.PullIfNotPresent,
			Args: []string{"--config=/etc/app/config.yaml", "--v=2"},
			Env:  []v1.EnvVar{{Name: "POD_NAME", ValueFrom: &v1.EnvVarSource{FieldRef: &v1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}},
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")},
				Limits:   v1.ResourceList{"memory": resource.MustParse("128Mi")}},
			LivenessProbe:          &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{"/bin/true"}}}, PeriodSeconds: 10, FailureThreshold: 3, TimeoutSeconds: 1, SuccessThreshold: 1},
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: v1.TerminationMessageReadFile,
		})
	}
	return p
}

func podStatus(p *v1.Pod, s podSpec) v1.PodStatus {
	phase := v1.PodPhase(s.Phase)
	if phase == "" {
		phase = v1.PodRunning
	}
	ready := phase == v1.PodRunning
	if s.Ready != nil {
		ready = *s.Ready
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	cs := v1.ConditionFalse
	if ready {
		cs = v1.ConditionTrue
	}
	st := v1.PodStatus{Phase: phase, HostIP: "192.0.2.10", PodIP: "10.0.0.7", PodIPs: []v1.PodIP{{IP: "10.0.0.7"}}, StartTime: &now, QOSClass: v1.PodQOSBurstable,
		Conditions: []v1.PodCondition{
			{Type: v1.PodReadyToStartContainers, Status: v1.ConditionTrue, LastTransitionTime: now},
			{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: now},
			{Type: v1.PodReady, Status: cs, LastTransitionTime: now},
			{Type: v1.ContainersReady, Status: cs, LastTransitionTime: now},
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: now},
		}}
	if !ready {
		st.Conditions[2].Reason, st.Conditions[3].Reason = "ContainersNotReady", "ContainersNotReady"
	}
	for i, c := range p.Spec.Containers {
		started := true
		id := fmt.Sprintf("containerd://%064x", i+1)
		cst := v1.ContainerStatus{Name: c.Name, Ready: ready, Started: &started, RestartCount: s.Restarts, Image: c.Image,
			ImageID: "registry.example/app@sha256:" + strings.Repeat("a", 64), ContainerID: id}
		switch phase {
		case v1.PodSucceeded, v1.PodFailed:
			ec := int32(0)
			if phase == v1.PodFailed {
				ec = 1
			}
			cst.State.Terminated = &v1.ContainerStateTerminated{ExitCode: ec, Reason: map[bool]string{true: "Completed", false: "Error"}[ec == 0], StartedAt: now, FinishedAt: now, ContainerID: id}
		case v1.PodPending:
			cst.State.Waiting = &v1.ContainerStateWaiting{Reason: "ContainerCreating"}
			cst.ContainerID, cst.ImageID = "", ""
		default:
			cst.State.Running = &v1.ContainerStateRunning{StartedAt: now}
		}
		st.ContainerStatuses = append(st.ContainerStatuses, cst)
	}
	return st
}

// add puts a pod where the kubelet's HandlePodAdditions puts it, then sets its
// status the way a pod worker does (that is what broadcasts to watchers).
func (h *harness) add(s podSpec) *v1.Pod {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.build(s)
	h.pods.AddPod(p)
	if s.NoStatus || kubetypes.IsMirrorPod(p) {
		if s.NoStatus && s.Raw == nil {
			p.Status = podStatus(p, s) // what the API server last said
		}
		return p
	}
	st := podStatus(p, s)
	if s.Raw != nil && s.Phase == "" && s.Ready == nil && p.Status.Phase != "" {
		st = *p.Status.DeepCopy()
	}
	h.statuses.SetPodStatus(h.logger, p, st)
	return p
}

func (h *harness) setStatus(uid string, s podSpec) bool {
	p, ok := h.pods.GetPodByUID(types.UID(uid))
	if !ok {
		return false
	}
	h.statuses.SetPodStatus(h.logger, p, podStatus(p, s))
	return true
}

// remove: keep=false is HandlePodRemoves then SyncTerminatedPod; keep=true is
// SyncTerminatedPod alone (a finished pod that its source still has).
func (h *harness) remove(uid string, keep bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, ok := h.pods.GetPodByUID(types.UID(uid))
	if !ok {
		return false
	}
	if !keep {
		h.pods.RemovePod(p)
	}
	h.statuses.TerminatePod(h.logger, p)
	if !keep {
		live := map[types.UID]bool{}
		for _, q := range h.pods.GetPods() {
			live[q.UID] = true
		}
		h.statuses.RemoveOrphanedStatuses(h.logger, live)
	}
	return true
}

func main() {
	socket := flag.String("socket", "pods-api.sock", "unix socket path (kubelet: /var/lib/kubelet/pods-api/pods-api.sock)")
	n := flag.Int("pods", 0, "generated pods from the api source")
	static := flag.Int("static", 0, "generated static pods (source=file)")
	mirrors := flag.Bool("mirrors", false, "also give every generated static pod a mirror pod")
	containers := flag.Int("containers", 1, "containers of a generated pod")
	pad := flag.Int("pad", 0, "pad bytes per generated pod")
	phase := flag.String("phase", "Running", "phase of generated and manifest pods")
	podReady := flag.Bool("pod-ready", true, "Ready condition of generated and manifest pods")
	noStatus := flag.Bool("no-status", false, "generated and manifest pods get no status-manager entry")
	podsJSON := flag.String("pods-json", "", `JSON file {"pods":[{name,namespace,uid,source,mirror,phase,ready,noStatus,containers,restarts,padBytes,deleting,labels,annotations,raw}]}`)
	manifests := flag.String("manifests", "", "static pod directory or file, read by the kubelet's own file source")
	node := flag.String("node", "node-1", "node name")
	fileCheck := flag.Duration("file-check", 20*time.Second, "fileCheckFrequency")
	ready := flag.Bool("ready", true, "sources ready at start (false: FAILED_PRECONDITION)")
	readyAfter := flag.Duration("ready-after", 0, "become ready after this long")
	churn := flag.Duration("churn", 0, "every interval: add a pod, next interval remove it, ...")
	flips := flag.Duration("flip", 0, "every interval: flip the Ready condition of one pod")
	metricsAddr := flag.String("metrics", "", "127.0.0.1:PORT to serve the kubelet registry's /metrics on")
	control := flag.String("control", "", "unix socket for the HTTP control endpoint")
	dump := flag.Bool("dump", false, "with --manifests: print the static pods the kubelet makes of it as JSON, and exit")
	dumpDirs := flag.Bool("dump-dirs", false, "read paths from stdin, one a line, and print one line of JSON for each: what the kubelet makes of it")
	schema := flag.Bool("schema", false, "print the JSON shape of a Pod, and exit")
	logPath := flag.String("log", "", "kubelet log file (- is stderr; empty: discarded)")
	v := flag.Int("v", 2, "log level")
	flag.Parse()

	klog.LogToStderr(false)
	fs := flag.NewFlagSet("klog", flag.ExitOnError)
	klog.InitFlags(fs)
	_ = fs.Set("logtostderr", "false")
	_ = fs.Set("stderrthreshold", "FATAL")
	_ = fs.Set("alsologtostderr", "false")
	_ = fs.Set("v", strconv.Itoa(*v))
	switch *logPath {
	case "":
		klog.SetOutput(io.Discard)
	case "-":
		klog.SetOutput(os.Stderr)
	default:
		f, err := os.OpenFile(*logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		klog.SetOutput(f)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	logger := klog.FromContext(ctx)
	metrics.Register()
	// As the kubelet does at its start; without it privileged containers are refused.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	if *schema {
		printSchema(os.Stdout)
		return
	}
	if *dumpDirs {
		if err := dumpDirectories(logger, os.Stdin, os.Stdout, *node); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}

	pm := kubepod.NewBasicPodManager()
	sm := status.NewManager(nil, pm, noDeletionSafety{}, noLatency{})
	h := &harness{logger: logger, node: *node, pods: pm, statuses: sm}
	h.ready.Store(*ready && *readyAfter == 0)

	// as NewMainKubelet does it
	var podCfg *config.PodConfig
	sourcesReady := config.NewSourcesReady(func(seen sets.Set[string]) bool {
		if !h.ready.Load() {
			return false
		}
		return podCfg == nil || podCfg.SeenAllSources(logger, seen)
	})
	if *manifests != "" {
		podCfg = config.NewPodConfig(record.NewBroadcaster().NewRecorder(clientscheme.Scheme, v1.EventSource{Component: "kubelet"}), noLatency{})
		config.NewSourceFile(logger, *manifests, types.NodeName(*node), *fileCheck, podCfg.Channel(ctx, kubetypes.FileSource))
	}
	broadcaster := podsapi.NewBroadcaster(ctx)
	ps := podsapi.NewPodsServer(broadcaster, pm, sm, sourcesReady)
	sm.AddPodUpdateNotifier(ps)

	spec := podSpec{Phase: *phase, Ready: podReady, NoStatus: *noStatus, Containers: *containers, PadBytes: *pad}
	for i := 0; i < *static; i++ {
		s := spec
		s.Name, s.Namespace, s.Source = fmt.Sprintf("static-%03d-%s", i, strings.ToLower(*node)), "kube-system", kubetypes.FileSource
		p := h.add(s)
		if *mirrors {
			m := s
			m.Mirror, m.Source, m.UID = true, kubetypes.ApiserverSource, ""
			m.Annotations = map[string]string{kubetypes.ConfigHashAnnotationKey: string(p.UID), kubetypes.ConfigMirrorAnnotationKey: string(p.UID)}
			h.add(m)
		}
	}
	for i := 0; i < *n; i++ {
		s := spec
		s.Name = fmt.Sprintf("app-%04d", i)
		h.add(s)
	}
	if *podsJSON != "" {
		b, err := os.ReadFile(*podsJSON)
		var f podsFile
		if err == nil {
			err = json.Unmarshal(b, &f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "--pods-json:", err)
			os.Exit(2)
		}
		for _, s := range f.Pods {
			h.add(s)
		}
	}
	if podCfg != nil {
		apply := func(u kubetypes.PodUpdate) {
			for _, p := range u.Pods {
				switch u.Op {
				case kubetypes.ADD, kubetypes.UPDATE, kubetypes.DELETE, kubetypes.RECONCILE:
					s := spec
					s.Raw = p
					h.add(s)
				case kubetypes.REMOVE:
					h.remove(string(p.UID), false)
				}
			}
			sourcesReady.AddSource(u.Source)
		}
		if *dump {
			apply(<-podCfg.Updates())
			out := pm.GetPods()
			sort.Slice(out, func(i, j int) bool { return out[i].Namespace+"/"+out[i].Name < out[j].Namespace+"/"+out[j].Name })
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", " ")
			_ = e.Encode(out)
			return
		}
		go func() {
			for u := range podCfg.Updates() {
				fmt.Printf("source %s op=%d pods=%d\n", u.Source, u.Op, len(u.Pods))
				apply(u)
			}
		}()
	}
	if *readyAfter > 0 {
		time.AfterFunc(*readyAfter, func() { h.ready.Store(true) })
	}
	if *churn > 0 {
		go func() {
			var last string
			for i := 0; ; i++ {
				time.Sleep(*churn)
				if last == "" {
					s := spec
					s.Name = fmt.Sprintf("churn-%06d", i)
					last = string(h.add(s).UID)
				} else {
					h.remove(last, false)
					last = ""
				}
			}
		}()
	}
	if *flips > 0 {
		go func() {
			for i := 0; ; i++ {
				time.Sleep(*flips)
				ps := pm.GetPods()
				if len(ps) == 0 {
					continue
				}
				sort.Slice(ps, func(a, b int) bool { return ps[a].UID < ps[b].UID })
				s := spec
				r := i%2 == 1
				s.Ready = &r
				h.setStatus(string(ps[0].UID), s)
			}
		}()
	}
	if *metricsAddr != "" {
		l, err := net.Listen("tcp", *metricsAddr)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Println("metrics http://" + l.Addr().String() + "/metrics")
		mux := http.NewServeMux()
		mux.Handle("/metrics", legacyregistry.Handler())
		go func() { _ = http.Serve(l, mux) }()
	}
	if *control != "" {
		_ = os.Remove(*control)
		l, err := net.Listen("unix", *control)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		mux := http.NewServeMux()
		ok := func(w http.ResponseWriter, found bool) {
			if !found {
				http.Error(w, "no such pod", 404)
				return
			}
			fmt.Fprintln(w, "ok")
		}
		body := func(r *http.Request) (s podSpec) { _ = json.NewDecoder(r.Body).Decode(&s); return }
		mux.HandleFunc("POST /pods", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, h.add(body(r)).UID) })
		mux.HandleFunc("PUT /pods/{uid}/status", func(w http.ResponseWriter, r *http.Request) { ok(w, h.setStatus(r.PathValue("uid"), body(r))) })
		mux.HandleFunc("DELETE /pods/{uid}", func(w http.ResponseWriter, r *http.Request) {
			ok(w, h.remove(r.PathValue("uid"), r.URL.Query().Get("keep") == "true"))
		})
		mux.HandleFunc("PUT /ready/{v}", func(w http.ResponseWriter, r *http.Request) { h.ready.Store(r.PathValue("v") == "true"); ok(w, true) })
		mux.HandleFunc("GET /pods", func(w http.ResponseWriter, r *http.Request) { _ = json.NewEncoder(w).Encode(pm.GetPods()) })
		go func() { _ = http.Serve(l, mux) }()
	}
	abs, _ := filepath.Abs(*socket)
	fmt.Println("serving unix://" + abs)
	server.ListenAndServePodsServer(ctx, "unix://"+abs, ps)
}

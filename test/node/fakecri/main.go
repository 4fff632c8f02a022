// fakecri SOCKET CONTROL: cri-client's fake container runtime on one unix socket, and on another one the orders of the
// tests, a line each, answered with "ok" and a number or with "error" and a reason:
//
//	exit NAMESPACE/POD CODE   the running containers of the pod, of every pod with *, end with this exit code
//	crash NAMESPACE/POD CODE  so does every container of it that is started from now on
//	heal NAMESPACE/POD        no longer
//	refuse IMAGE              pulls of the image fail from now on, and it is not there
//	allow IMAGE               no longer
//	drain SOCKET              takes every token of the rate limit of the Pods API there, as soon as it runs in
//	rest SOCKET               no longer
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/cri-client/pkg/fake"
)

// The labels by which the kubelet finds its own containers again.
const (
	podNameLabel      = "io.kubernetes.pod.name"
	podNamespaceLabel = "io.kubernetes.pod.namespace"
)

// runtime is the fake one, except where a test has ordered something.
type runtime struct {
	*fake.RemoteRuntime

	lock    sync.Mutex
	crashes map[string]int32
	refused map[string]bool
	drains  map[string]context.CancelFunc
}

func (r *runtime) StartContainer(ctx context.Context, req *runtimeapi.StartContainerRequest) (*runtimeapi.StartContainerResponse, error) {
	response, err := r.RemoteRuntime.StartContainer(ctx, req)
	if err != nil {
		return nil, err
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()
	if container, ok := r.RuntimeService.Containers[req.ContainerId]; ok {
		if code, crashes := r.crashes[podOf(container)]; crashes {
			end(container, code)
		}
	}
	return response, nil
}

func (r *runtime) PullImage(ctx context.Context, req *runtimeapi.PullImageRequest) (*runtimeapi.PullImageResponse, error) {
	r.lock.Lock()
	refused := r.refused[req.Image.Image]
	r.lock.Unlock()
	if refused {
		return nil, status.Errorf(codes.NotFound, "the test refuses to pull %s", req.Image.Image)
	}
	return r.RemoteRuntime.PullImage(ctx, req)
}

func (r *runtime) obey(line string) (int, error) {
	words := strings.Fields(line)
	if len(words) < 2 {
		return 0, fmt.Errorf("cannot obey %q: an order is a verb, a subject and perhaps a number", line)
	}
	verb, subject := words[0], words[1]
	code := int64(0)
	if len(words) > 2 {
		var err error
		if code, err = strconv.ParseInt(words[2], 10, 32); err != nil {
			return 0, err
		}
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	switch verb {
	case "crash":
		r.crashes[subject] = int32(code)
		return r.exit(subject, int32(code)), nil
	case "heal":
		delete(r.crashes, subject)
		return 0, nil
	case "exit":
		return r.exit(subject, int32(code)), nil
	case "refuse":
		r.refused[subject] = true
		r.ImageService.Lock()
		delete(r.ImageService.Images, subject)
		r.ImageService.Unlock()
		return 0, nil
	case "allow":
		delete(r.refused, subject)
		return 0, nil
	case "drain":
		ctx, cancel := context.WithCancel(context.Background())
		r.drains[subject] = cancel
		return 0, drain(ctx, subject)
	case "rest":
		if cancel, ok := r.drains[subject]; ok {
			cancel()
		}
		return 0, nil
	}
	return 0, fmt.Errorf("cannot obey %q: the verbs are exit, crash, heal, refuse, allow, drain and rest", line)
}

// drain calls GetPod for a pod that is not there, always with some calls under way.
func drain(ctx context.Context, socket string) error {
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { connection.Close() })
	for range 4 {
		go func() {
			// Its one field is what GetPodRequest has too: a string with number 1.
			request := &runtimeapi.VersionRequest{Version: "nobody"}
			for ctx.Err() == nil {
				_ = connection.Invoke(ctx, "/v1alpha1.Pods/GetPod", request, &runtimeapi.VersionRequest{})
			}
		}()
	}
	return nil
}

// exit ends the running containers of a pod, and says how many there were.
func (r *runtime) exit(pod string, code int32) int {
	r.RuntimeService.Lock()
	defer r.RuntimeService.Unlock()
	ended := 0
	for _, container := range r.RuntimeService.Containers {
		if (pod == "*" || podOf(container) == pod) && container.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			end(container, code)
			ended++
		}
	}
	return ended
}

func podOf(container *apitest.FakeContainer) string {
	return container.Labels[podNamespaceLabel] + "/" + container.Labels[podNameLabel]
}

func end(container *apitest.FakeContainer, code int32) {
	container.State = runtimeapi.ContainerState_CONTAINER_EXITED
	container.FinishedAt = time.Now().UnixNano()
	container.ExitCode = code
	container.Reason = "Completed"
	if code != 0 {
		container.Reason = "Error"
	}
}

func (r *runtime) takeOrders(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			lines := bufio.NewScanner(connection)
			for lines.Scan() {
				if count, err := r.obey(lines.Text()); err != nil {
					fmt.Fprintln(connection, "error", err)
				} else {
					fmt.Fprintln(connection, "ok", count)
				}
			}
		}()
	}
}

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: fakecri SOCKET CONTROL"))
	}
	r := &runtime{
		RemoteRuntime: fake.NewFakeRemoteRuntime(),
		crashes:       map[string]int32{},
		refused:       map[string]bool{},
		drains:        map[string]context.CancelFunc{},
	}
	r.RuntimeService.FakeStatus = &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true}}}
	r.ImageService.SetFakeImageSize(1000)

	orders, err := net.Listen("unix", os.Args[2])
	if err != nil {
		fail(err)
	}
	go r.takeOrders(orders)
	listener, err := net.Listen("unix", os.Args[1])
	if err != nil {
		fail(err)
	}
	// A server of its own: that of the fake one would call its methods and not these.
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, r)
	runtimeapi.RegisterImageServiceServer(server, r)
	go func() {
		if err := server.Serve(listener); err != nil {
			fail(err)
		}
	}()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	<-signals
	server.Stop()
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

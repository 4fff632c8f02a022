// peer is what kubelet-probe is measured against: the shortest honest Go client of the Pods API. It lists once, decodes
// every pod with Kubernetes' own types, and prints how many there are and how many of them are static.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	v1 "k8s.io/api/core/v1"
	podsv1alpha1 "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// As large an answer as kubelet-probe takes by default; gRPC's own limit is 4 MiB.
const maxBytes = 64 << 20

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer SOCKET")
		os.Exit(2)
	}
	if err := list(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func list(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxBytes)))
	if err != nil {
		return err
	}
	defer conn.Close()
	answer, err := podsv1alpha1.NewPodsClient(conn).ListPods(ctx, &podsv1alpha1.ListPodsRequest{})
	if err != nil {
		return err
	}
	static := 0
	for _, bytes := range answer.Pods {
		var pod v1.Pod
		if err := pod.Unmarshal(bytes); err != nil {
			return err
		}
		if source, ok := pod.Annotations["kubernetes.io/config.source"]; ok && source != "api" {
			static++
		}
	}
	fmt.Printf("%d pods, %d static\n", len(answer.Pods), static)
	return nil
}

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// The kubelet's own file source. These functions are unexported, so they are
// linked by name; linkname.s lets the compiler accept bodies that are elsewhere.

//go:linkname newSourceFile k8s.io/kubernetes/pkg/kubelet/config.newSourceFile
func newSourceFile(path string, nodeName types.NodeName, period time.Duration, updates unsafe.Pointer) unsafe.Pointer

//go:linkname listConfig k8s.io/kubernetes/pkg/kubelet/config.(*sourceFile).listConfig
func listConfig(s unsafe.Pointer, logger klog.Logger) error

//go:linkname extractFromFile k8s.io/kubernetes/pkg/kubelet/config.(*sourceFile).extractFromFile
func extractFromFile(s unsafe.Pointer, logger klog.Logger, filename string) (*v1.Pod, error)

//go:linkname tryDecodeSinglePod k8s.io/kubernetes/pkg/kubelet/config.tryDecodeSinglePod
func tryDecodeSinglePod(logger klog.Logger, data []byte, defaultFn func(klog.Logger, *api.Pod) error) (bool, *v1.Pod, error)

//go:linkname applyDefaults k8s.io/kubernetes/pkg/kubelet/config.applyDefaults
func applyDefaults(logger klog.Logger, pod *api.Pod, source string, isFile bool, nodeName types.NodeName) error

// maxFile is config.maxConfigLength.
const maxFile = 10 << 20

type dumpedPod struct {
	Namespace   string
	Name        string
	DeclaredUID string
	Images      []string
	File        string
}

type dumpedFile struct {
	File   string `json:"file"`
	Pod    string `json:"pod,omitempty"`
	Mirror bool   `json:"mirror,omitempty"` // the kubelet drops it after the file source
	Error  string `json:"error,omitempty"`
	Parsed bool   `json:"parsed,omitempty"` // decoded as a Pod, whatever came of it
}

type dumped struct {
	Directory string       `json:"directory"`
	Node      string       `json:"nodeName"`
	Files     []dumpedFile `json:"files"`
	Pods      []dumpedPod  `json:"pods"`
	ScanError string       `json:"scanError,omitempty"`
}

// dumpDirectory runs the kubelet's file source once over one path, and its
// reader over each file alone.
func dumpDirectory(logger klog.Logger, path, node string) (out dumped) {
	out = dumped{Directory: path, Node: node, Files: []dumpedFile{}, Pods: []dumpedPod{}}
	// A file that makes the kubelet itself panic must not end the other directories' dump.
	defer func() {
		if r := recover(); r != nil {
			out.ScanError = fmt.Sprintf("panic: %v", r)
		}
	}()
	path = strings.TrimRight(path, "/") // as config.NewSourceFile
	// A channel of the package's own unexported element type.
	updates := reflect.MakeChan(reflect.ChanOf(reflect.BothDir, sourceUpdateType()), 4)
	channel := unsafe.Pointer(updates.Pointer())
	source := newSourceFile(path, types.NodeName(node), time.Hour, channel)
	if err := listConfig(source, logger); err != nil {
		out.ScanError = err.Error()
	}
	var pods []*v1.Pod
	for {
		update, ok := updates.TryRecv()
		if !ok {
			break
		}
		pods = update.FieldByName("Pods").Interface().([]*v1.Pod)
	}

	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		files = nil
	} else if info.IsDir() {
		files, _ = filepath.Glob(filepath.Join(path, "[^.]*"))
		sort.Strings(files)
	}
	type read struct {
		file string
		pod  *v1.Pod
		uid  string
	}
	var reads []read
	for _, file := range files {
		entry := dumpedFile{File: filepath.Base(file)}
		info, err := os.Stat(file)
		switch {
		case err != nil:
			entry.Error = err.Error()
		case info.IsDir():
			entry.Error = "is a directory"
		case !info.Mode().IsRegular():
			entry.Error = "not a regular file"
		default:
			pod, err := extractFromFile(source, logger, file)
			if err != nil {
				entry.Error = err.Error()
				if data, readErr := os.ReadFile(file); readErr == nil && len(data) < maxFile {
					entry.Parsed, _, _ = tryDecodeSinglePod(logger, data, func(logger klog.Logger, p *api.Pod) error {
						return applyDefaults(logger, p, file, true, types.NodeName(node))
					})
				}
				break
			}
			entry.Parsed = true
			entry.Pod, _ = cache.MetaNamespaceKeyFunc(pod)
			entry.Mirror = kubetypes.IsMirrorPod(pod)
			r := read{file: entry.File, pod: pod}
			data, _ := os.ReadFile(file)
			_, _, _ = tryDecodeSinglePod(logger, data, func(logger klog.Logger, p *api.Pod) error {
				r.uid = string(p.UID)
				return applyDefaults(logger, p, file, true, types.NodeName(node))
			})
			reads = append(reads, r)
		}
		out.Files = append(out.Files, entry)
	}
	sort.Slice(pods, func(i, j int) bool {
		return pods[i].Namespace+"/"+pods[i].Name < pods[j].Namespace+"/"+pods[j].Name
	})
	for _, p := range pods {
		if kubetypes.IsMirrorPod(p) {
			continue
		}
		d := dumpedPod{Namespace: p.Namespace, Name: p.Name, Images: []string{}}
		for _, c := range p.Spec.Containers {
			d.Images = append(d.Images, c.Image)
		}
		for i := len(reads) - 1; i >= 0; i-- {
			r := reads[i]
			if r.pod.Namespace == p.Namespace && r.pod.Name == p.Name && r.pod.UID == p.UID && reflect.DeepEqual(r.pod.Spec, p.Spec) {
				d.File, d.DeclaredUID = r.file, r.uid
				break
			}
		}
		out.Pods = append(out.Pods, d)
	}
	return out
}

func sourceUpdateType() reflect.Type {
	method, _ := reflect.TypeOf(&config.PodConfig{}).MethodByName("Channel")
	return method.Type.Out(0).Elem()
}

// dumpDirectories answers each line of input, a path, with one line of JSON.
func dumpDirectories(logger klog.Logger, input io.Reader, output io.Writer, node string) error {
	lines := bufio.NewScanner(input)
	lines.Buffer(nil, 1<<20)
	buffered := bufio.NewWriter(output)
	encoder := json.NewEncoder(buffered)
	for lines.Scan() {
		if err := encoder.Encode(dumpDirectory(logger, lines.Text(), node)); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
	return lines.Err()
}

// printSchema writes the JSON shape of v1.Pod, one line a struct: its name, then field:type pairs.
func printSchema(output io.Writer) {
	done := map[reflect.Type]bool{}
	queue := []reflect.Type{reflect.TypeOf(v1.Pod{})}
	unmarshaler := reflect.TypeOf((*json.Unmarshaler)(nil)).Elem()
	var spell func(t reflect.Type) string
	spell = func(t reflect.Type) string {
		if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(unmarshaler) {
			return "@" + t.Name()
		}
		switch t.Kind() {
		case reflect.Pointer:
			return "*" + spell(t.Elem())
		case reflect.Slice:
			if t.Elem().Kind() == reflect.Uint8 {
				return "bytes"
			}
			return "[]" + spell(t.Elem())
		case reflect.Map:
			return "{}" + spell(t.Elem())
		case reflect.Struct:
			queue = append(queue, t)
			return t.Name()
		default:
			return t.Kind().String()
		}
	}
	for len(queue) > 0 {
		t := queue[0]
		queue = queue[1:]
		if done[t] {
			continue
		}
		done[t] = true
		var fields []string
		var walk func(t reflect.Type)
		walk = func(t reflect.Type) {
			for i := 0; i < t.NumField(); i++ {
				f := t.Field(i)
				name := strings.Split(f.Tag.Get("json"), ",")[0]
				if name == "-" || !f.IsExported() {
					continue
				}
				if f.Anonymous && name == "" {
					walk(f.Type)
					continue
				}
				fields = append(fields, name+":"+spell(f.Type))
			}
		}
		walk(t)
		fmt.Fprintln(output, t.Name()+" "+strings.Join(fields, " "))
	}
}

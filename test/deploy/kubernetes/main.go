// Asks Kubernetes' own code what it makes of manifests: kustomize builds each folder, the API types decode each object
// strictly, and the API server's defaulting and validation judge it. Prints one JSON object a line.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	k8sjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

type result struct {
	From   string          `json:"from"`
	Kind   string          `json:"kind"`
	Name   string          `json:"name"`
	Errors []string        `json:"errors"`
	Object json.RawMessage `json:"object"`
}

func main() {
	// As the API server has it by --allow-privileged: node-problem-detector runs so.
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for _, path := range os.Args[1:] {
		documents, err := documentsOf(path)
		if err != nil {
			_ = encoder.Encode(result{From: path, Errors: []string{err.Error()}})
			continue
		}
		for _, document := range documents {
			judged := judge(document)
			judged.From = path
			_ = encoder.Encode(judged)
		}
	}
}

// A folder is built by kustomize, a file is split at its document marks.
func documentsOf(path string) ([][]byte, error) {
	stat, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var text []byte
	if stat.IsDir() {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
		if err != nil {
			return nil, err
		}
		text, err = built.AsYaml()
		if err != nil {
			return nil, err
		}
	} else if text, err = os.ReadFile(path); err != nil {
		return nil, err
	}
	var documents [][]byte
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		if len(bytes.TrimSpace(part)) > 0 {
			documents = append(documents, part)
		}
	}
	return documents, nil
}

func judge(document []byte) result {
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return result{Errors: []string{err.Error()}}
	}
	var meta struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(asJSON, &meta)
	judged := result{Kind: meta.Kind, Name: meta.Metadata.Name, Errors: []string{}, Object: asJSON}

	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	strict := k8sjson.NewSerializerWithOptions(k8sjson.DefaultMetaFactory, legacyscheme.Scheme, legacyscheme.Scheme,
		k8sjson.SerializerOptions{Strict: true})
	external, _, err := strict.Decode(asJSON, nil, nil)
	if err != nil {
		judged.Errors = append(judged.Errors, strings.Split(err.Error(), "\n")...)
		return judged
	}
	legacyscheme.Scheme.Default(external)
	internal, _, err := codecs.UniversalDecoder().Decode(asJSON, nil, nil)
	if err != nil {
		judged.Errors = append(judged.Errors, err.Error())
		return judged
	}
	for _, problem := range validate(external, internal) {
		judged.Errors = append(judged.Errors, problem.Error())
	}
	return judged
}

func validate(external, internal runtime.Object) field.ErrorList {
	_, isDaemonSet := external.(*appsv1.DaemonSet)
	_, isPod := external.(*corev1.Pod)
	options := corevalidation.PodValidationOptions{}
	switch object := internal.(type) {
	case *apps.DaemonSet:
		if isDaemonSet && object.Namespace == "" {
			object.Namespace = "default"
		}
		return appsvalidation.ValidateDaemonSet(object, options)
	case *core.Pod:
		if isPod && object.Namespace == "" {
			object.Namespace = "default"
		}
		return corevalidation.ValidatePodCreate(object, options)
	case *core.Namespace:
		return corevalidation.ValidateNamespace(object)
	case *core.ConfigMap:
		if object.Namespace == "" {
			object.Namespace = "default"
		}
		return corevalidation.ValidateConfigMap(object)
	}
	return field.ErrorList{field.Invalid(field.NewPath("kind"), fmt.Sprintf("%T", internal), "no validation for this kind here")}
}

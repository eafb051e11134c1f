package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const configFileType = "kubernetes:yaml/v2:ConfigFile"

type configFile struct {
	pulumi.ResourceState
}

type configFileArgs struct {
	File string `pulumi:"file"`
}

// constructConfigFile registers the objects of a manifest, which is a file or a URL. Objects may need the namespaces and the
// kinds that the same manifest declares, so these come first.
func constructConfigFile(
	ctx *pulumi.Context, kind, name string, inputs provider.ConstructInputs, options pulumi.ResourceOption,
) (*provider.ConstructResult, error) {
	if kind != configFileType {
		return nil, fmt.Errorf("the type %s is not supported", kind)
	}
	var args configFileArgs
	if err := inputs.CopyTo(&args); err != nil {
		return nil, err
	}
	objects, err := readManifest(args.File)
	if err != nil {
		return nil, fmt.Errorf("the manifest %s cannot be read: %w", args.File, err)
	}
	file := &configFile{}
	if err := ctx.RegisterComponentResource(kind, name, file, options); err != nil {
		return nil, err
	}
	var first []pulumi.Resource
	for _, isFirst := range []bool{true, false} {
		for _, object := range objects {
			if isPrerequisite(object) != isFirst {
				continue
			}
			child, err := registerObject(ctx, name, object, pulumi.Parent(file), pulumi.DependsOn(first))
			if err != nil {
				return nil, err
			}
			if isFirst {
				first = append(first, child)
			}
		}
	}
	return provider.NewConstructResult(file)
}

func isPrerequisite(object *unstructured.Unstructured) bool {
	return object.GetKind() == "CustomResourceDefinition" || object.GetKind() == "Namespace"
}

func registerObject(
	ctx *pulumi.Context, prefix string, object *unstructured.Unstructured, options ...pulumi.ResourceOption,
) (pulumi.Resource, error) {
	apiVersion := object.GetAPIVersion()
	if !strings.Contains(apiVersion, "/") {
		apiVersion = "core/" + apiVersion
	}
	properties := pulumi.Map{}
	for key, value := range object.Object {
		properties[key] = pulumi.Any(value)
	}
	child := &pulumi.CustomResourceState{}
	token := fmt.Sprintf("kubernetes:%s:%s", apiVersion, object.GetKind())
	name := fmt.Sprintf("%s:%s", prefix, identifier(object))
	err := ctx.RegisterResource(token, name, properties, child, append(options, pulumi.Version(version))...)
	return child, err
}

func readManifest(path string) ([]*unstructured.Unstructured, error) {
	text, err := readText(path)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func readText(path string) ([]byte, error) {
	if !strings.HasPrefix(path, "https://") && !strings.HasPrefix(path, "http://") {
		return os.ReadFile(path)
	}
	response, err := http.Get(path)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answered %s", response.Status)
	}
	return io.ReadAll(response.Body)
}

package main

import (
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var options = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, SkipNulls: true}

func unmarshal(properties *structpb.Struct) (resource.PropertyMap, error) {
	return plugin.UnmarshalProperties(properties, options)
}

func marshal(properties resource.PropertyMap) (*structpb.Struct, error) {
	return plugin.MarshalProperties(properties, options)
}

// objectAt returns a copy of a nested object, which may be secret; it is empty if there is none.
func objectAt(properties resource.PropertyMap, key resource.PropertyKey) resource.PropertyMap {
	value := properties[key]
	for value.IsSecret() {
		value = value.SecretValue().Element
	}
	if !value.IsObject() {
		return resource.PropertyMap{}
	}
	return value.ObjectValue().Copy()
}

// objectOf returns what to send to the API server.
func objectOf(properties *structpb.Struct) (*unstructured.Unstructured, error) {
	values, err := plugin.UnmarshalProperties(properties, plugin.MarshalOptions{SkipNulls: true})
	if err != nil {
		return nil, err
	}
	return &unstructured.Unstructured{Object: values.Mappable()}, nil
}

// propertiesOf returns the state of an object. The values of a Secret are secrets of the stack, too.
func propertiesOf(object *unstructured.Unstructured) (*structpb.Struct, error) {
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	properties := resource.NewPropertyMapFromMap(object.Object)
	if object.GetKind() == "Secret" {
		for _, key := range []resource.PropertyKey{"data", "stringData"} {
			if value, ok := properties[key]; ok {
				properties[key] = resource.MakeSecret(value)
			}
		}
	}
	return marshal(properties)
}

func identifier(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetName()
	}
	return object.GetNamespace() + "/" + object.GetName()
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	fieldManager = "pulumi-kubernetes"
	// How long a kind may be unknown: its CRD may have just been created.
	kindTimeout  = 30 * time.Second
	pollInterval = 250 * time.Millisecond
)

// cluster is the API server that the environment selects: by KUBECONFIG, or in a pod by its service account.
type cluster struct {
	namespace string
	client    dynamic.Interface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

func connect() (*cluster, error) {
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster is configured: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kinds))
	return &cluster{namespace: namespace, client: client, mapper: mapper}, nil
}

// apply returns the object as the API server has stored it.
func (c *cluster) apply(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := c.resourceFor(ctx, object)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	force := true
	options := metav1.PatchOptions{FieldManager: fieldManager, Force: &force}
	return resource.Patch(ctx, object.GetName(), types.ApplyPatchType, body, options)
}

// find returns nil if the object does not exist.
func (c *cluster) find(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := c.resourceFor(ctx, object)
	if err != nil {
		return nil, err
	}
	found, err := resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (c *cluster) delete(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := c.resourceFor(ctx, object)
	if err != nil {
		return err
	}
	propagation := metav1.DeletePropagationBackground
	err = resource.Delete(ctx, object.GetName(), metav1.DeleteOptions{PropagationPolicy: &propagation})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *cluster) resourceFor(ctx context.Context, object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	mapping, err := c.mappingFor(ctx, object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	resource := c.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, nil
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(c.namespace)
	}
	return resource.Namespace(object.GetNamespace()), nil
}

func (c *cluster) mappingFor(ctx context.Context, kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	var mapping *meta.RESTMapping
	var cause error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, kindTimeout, true, func(context.Context) (bool, error) {
		mapping, cause = c.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if cause == nil {
			return true, nil
		}
		if !meta.IsNoMatchError(cause) {
			return false, cause
		}
		c.mapper.Reset()
		return false, nil
	})
	if wait.Interrupted(err) {
		err = errors.Join(fmt.Errorf("the cluster does not know the kind %s: is its CRD installed?", kind), cause)
	}
	return mapping, err
}

package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The schema lets programs in YAML use the provider; the other languages have packages with the types.
//
//go:embed schema.json
var packageSchema string

type kubernetesProvider struct {
	pulumirpc.UnimplementedResourceProviderServer
	host *provider.HostClient

	connecting sync.Mutex
	connected  *cluster
}

// cluster connects on first use, so that a preview of new objects needs no cluster.
func (p *kubernetesProvider) cluster() (*cluster, error) {
	p.connecting.Lock()
	defer p.connecting.Unlock()
	if p.connected != nil {
		return p.connected, nil
	}
	connected, err := connect()
	p.connected = connected
	return connected, err
}

func (p *kubernetesProvider) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: version}, nil
}

func (p *kubernetesProvider) GetSchema(
	context.Context, *pulumirpc.GetSchemaRequest,
) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: strings.ReplaceAll(packageSchema, "0.0.0", version)}, nil
}

func (p *kubernetesProvider) CheckConfig(
	_ context.Context, request *pulumirpc.CheckRequest,
) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: request.News}, nil
}

func (p *kubernetesProvider) DiffConfig(context.Context, *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
}

func (p *kubernetesProvider) Configure(
	context.Context, *pulumirpc.ConfigureRequest,
) (*pulumirpc.ConfigureResponse, error) {
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true, AcceptOutputs: false}, nil
}

// Check names an object that the program does not name, and keeps the name that it has.
func (p *kubernetesProvider) Check(
	_ context.Context, request *pulumirpc.CheckRequest,
) (*pulumirpc.CheckResponse, error) {
	news, err := unmarshal(request.News)
	if err != nil {
		return nil, err
	}
	olds, err := unmarshal(request.Olds)
	if err != nil {
		return nil, err
	}
	metadata := objectAt(news, "metadata")
	if _, isNamed := metadata["name"]; !isNamed {
		if old, ok := objectAt(olds, "metadata")["name"]; ok {
			metadata["name"] = old
		} else {
			seed := sha256.Sum256(append([]byte(request.Urn), request.RandomSeed...))
			name := strings.ToLower(urn.URN(request.Urn).Name()) + "-" + hex.EncodeToString(seed[:4])
			metadata["name"] = resource.NewProperty(name)
		}
	}
	news["metadata"] = resource.NewProperty(metadata)
	inputs, err := marshal(news)
	return &pulumirpc.CheckResponse{Inputs: inputs}, err
}

// What identifies an object: a change replaces it.
func identity(inputs resource.PropertyMap) [4]string {
	text := func(object resource.PropertyMap, key resource.PropertyKey) string {
		if value, ok := object[key]; ok && value.IsString() {
			return value.StringValue()
		}
		return ""
	}
	metadata := objectAt(inputs, "metadata")
	group, _, isGrouped := strings.Cut(text(inputs, "apiVersion"), "/")
	if !isGrouped {
		group = ""
	}
	return [4]string{group, text(inputs, "kind"), text(metadata, "namespace"), text(metadata, "name")}
}

func (p *kubernetesProvider) Diff(
	_ context.Context, request *pulumirpc.DiffRequest,
) (*pulumirpc.DiffResponse, error) {
	olds, err := unmarshal(request.OldInputs)
	if err != nil {
		return nil, err
	}
	news, err := unmarshal(request.News)
	if err != nil {
		return nil, err
	}
	diff := olds.Diff(news)
	if diff == nil {
		return &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}, nil
	}
	response := &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_SOME}
	for _, key := range diff.ChangedKeys() {
		response.Diffs = append(response.Diffs, string(key))
	}
	if identity(olds) != identity(news) {
		response.Replaces = []string{"metadata"}
	}
	return response, nil
}

func (p *kubernetesProvider) Create(
	ctx context.Context, request *pulumirpc.CreateRequest,
) (*pulumirpc.CreateResponse, error) {
	if request.Preview {
		return &pulumirpc.CreateResponse{Properties: request.Properties}, nil
	}
	object, properties, err := p.apply(ctx, request.Properties)
	if err != nil {
		return nil, err
	}
	return &pulumirpc.CreateResponse{Id: identifier(object), Properties: properties}, nil
}

func (p *kubernetesProvider) Update(
	ctx context.Context, request *pulumirpc.UpdateRequest,
) (*pulumirpc.UpdateResponse, error) {
	if request.Preview {
		return &pulumirpc.UpdateResponse{Properties: request.News}, nil
	}
	_, properties, err := p.apply(ctx, request.News)
	return &pulumirpc.UpdateResponse{Properties: properties}, err
}

func (p *kubernetesProvider) apply(
	ctx context.Context, inputs *structpb.Struct,
) (*unstructured.Unstructured, *structpb.Struct, error) {
	cluster, err := p.cluster()
	if err != nil {
		return nil, nil, err
	}
	object, err := objectOf(inputs)
	if err != nil {
		return nil, nil, err
	}
	stored, err := cluster.apply(ctx, object)
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s could not be applied: %w", object.GetKind(), identifier(object), err)
	}
	properties, err := propertiesOf(stored)
	return stored, properties, err
}

// Read returns no ID if the object does not exist.
func (p *kubernetesProvider) Read(
	ctx context.Context, request *pulumirpc.ReadRequest,
) (*pulumirpc.ReadResponse, error) {
	cluster, err := p.cluster()
	if err != nil {
		return nil, err
	}
	object, err := objectOf(request.Properties)
	if err != nil {
		return nil, err
	}
	stored, err := cluster.find(ctx, object)
	if err != nil || stored == nil {
		return &pulumirpc.ReadResponse{}, err
	}
	properties, err := propertiesOf(stored)
	return &pulumirpc.ReadResponse{Id: request.Id, Properties: properties, Inputs: request.Inputs}, err
}

// Delete does not wait for finalizers.
func (p *kubernetesProvider) Delete(ctx context.Context, request *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	cluster, err := p.cluster()
	if err != nil {
		return nil, err
	}
	object, err := objectOf(request.Properties)
	if err != nil {
		return nil, err
	}
	if err := cluster.delete(ctx, object); err != nil {
		return nil, fmt.Errorf("%s %s could not be deleted: %w", object.GetKind(), identifier(object), err)
	}
	return &emptypb.Empty{}, nil
}

func (p *kubernetesProvider) Construct(
	ctx context.Context, request *pulumirpc.ConstructRequest,
) (*pulumirpc.ConstructResponse, error) {
	return provider.Construct(ctx, request, p.host.EngineConn(), constructConfigFile)
}

func (p *kubernetesProvider) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// A module that speaks the module protocol by itself, with the public API only.
//
// It has a generic component, a navigation service with methods that the Python SDK does not know, and
// a gauge, which is an API of its own.
package main

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"

	pb "go.viam.com/api/app/v1"
	commonpb "go.viam.com/api/common/v1"
	genericpb "go.viam.com/api/component/generic/v1"
	modulepb "go.viam.com/api/module/v1"
	robotpb "go.viam.com/api/robot/v1"
	navigationpb "go.viam.com/api/service/navigation/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/reflection"
)

var models = []struct{ namespace, kind, subtype, service, model string }{
	{"rdk", "component", "generic", "viam.component.generic.v1.GenericService", "acme:go:lamp"},
	{"rdk", "service", "navigation", "viam.service.navigation.v1.NavigationService", "acme:go:pilot"},
	{"acme", "component", "gauge", gaugeService, "acme:go:gauge"},
}

// What the module knows of its resources, by name.
type module struct {
	modulepb.UnimplementedModuleServiceServer
	lock    sync.Mutex
	configs map[string]*pb.ComponentConfig
	changes map[string]int
	machine robotpb.RobotServiceClient
}

func main() {
	listener, err := net.Listen("unix", os.Args[1])
	check(err)
	m := &module{configs: map[string]*pb.ComponentConfig{}, changes: map[string]int{}}
	server := grpc.NewServer()
	modulepb.RegisterModuleServiceServer(server, m)
	genericpb.RegisterGenericServiceServer(server, &lamp{module: m})
	navigationpb.RegisterNavigationServiceServer(server, &pilot{})
	registerGauge(server)
	reflection.Register(server)
	check(server.Serve(listener))
}

func (m *module) Ready(_ context.Context, request *modulepb.ReadyRequest) (*modulepb.ReadyResponse, error) {
	address := request.ParentAddress
	if strings.HasPrefix(address, "/") {
		address = "unix:" + address
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	m.machine = robotpb.NewRobotServiceClient(connection)
	handlers := &modulepb.HandlerMap{}
	for _, each := range models {
		handlers.Handlers = append(handlers.Handlers, &modulepb.HandlerDefinition{
			Subtype: &robotpb.ResourceRPCSubtype{
				Subtype:      &commonpb.ResourceName{Namespace: each.namespace, Type: each.kind, Subtype: each.subtype},
				ProtoService: each.service,
			},
			Models: []string{each.model},
		})
	}
	return &modulepb.ReadyResponse{Ready: true, Handlermap: handlers}, nil
}

func (m *module) ValidateConfig(context.Context, *modulepb.ValidateConfigRequest) (*modulepb.ValidateConfigResponse, error) {
	return &modulepb.ValidateConfigResponse{}, nil
}

func (m *module) AddResource(_ context.Context, request *modulepb.AddResourceRequest) (*modulepb.AddResourceResponse, error) {
	m.keep(request.Config)
	return &modulepb.AddResourceResponse{}, nil
}

func (m *module) ReconfigureResource(
	_ context.Context, request *modulepb.ReconfigureResourceRequest,
) (*modulepb.ReconfigureResourceResponse, error) {
	m.keep(request.Config)
	return &modulepb.ReconfigureResourceResponse{}, nil
}

func (m *module) RemoveResource(context.Context, *modulepb.RemoveResourceRequest) (*modulepb.RemoveResourceResponse, error) {
	return &modulepb.RemoveResourceResponse{}, nil
}

func (m *module) keep(config *pb.ComponentConfig) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.configs[config.Name] = config
	m.changes[config.Name]++
}

func (m *module) log(ctx context.Context, entry *commonpb.LogEntry) error {
	_, err := m.machine.Log(ctx, &robotpb.LogRequest{Logs: []*commonpb.LogEntry{entry}})
	return err
}

func check(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// A machine server that is not ours: only gRPC, and HTTP answers without a word.
//
// Run as `server ADDRESS NAME...`. It says the names by multicast DNS.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"go.uber.org/zap"
	common "go.viam.com/api/common/v1"
	sensor "go.viam.com/api/component/sensor/v1"
	robot "go.viam.com/api/robot/v1"
	"go.viam.com/utils/rpc"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/h2c"
	"google.golang.org/protobuf/types/known/structpb"
)

var gauge = &common.ResourceName{Namespace: "rdk", Type: "component", Subtype: "sensor", Name: "gauge"}

type machine struct {
	robot.UnimplementedRobotServiceServer
}

func (machine) GetVersion(context.Context, *robot.GetVersionRequest) (*robot.GetVersionResponse, error) {
	return &robot.GetVersionResponse{Platform: "rdk", Version: "0.99.0", ApiVersion: "v0.1.577"}, nil
}

func (machine) ResourceNames(context.Context, *robot.ResourceNamesRequest) (*robot.ResourceNamesResponse, error) {
	return &robot.ResourceNamesResponse{Resources: []*common.ResourceName{gauge}}, nil
}

func (machine) ResourceRPCSubtypes(
	context.Context, *robot.ResourceRPCSubtypesRequest,
) (*robot.ResourceRPCSubtypesResponse, error) {
	subtype := &robot.ResourceRPCSubtype{Subtype: gauge, ProtoService: sensor.SensorService_ServiceDesc.ServiceName}
	return &robot.ResourceRPCSubtypesResponse{ResourceRpcSubtypes: []*robot.ResourceRPCSubtype{subtype}}, nil
}

func (machine) GetMachineStatus(
	context.Context, *robot.GetMachineStatusRequest,
) (*robot.GetMachineStatusResponse, error) {
	return &robot.GetMachineStatusResponse{
		State:     robot.GetMachineStatusResponse_STATE_RUNNING,
		Config:    &robot.ConfigStatus{Revision: "7b3"},
		Resources: []*robot.ResourceStatus{{Name: gauge, State: robot.ResourceStatus_STATE_READY}},
	}, nil
}

type readings struct {
	sensor.UnimplementedSensorServiceServer
}

func (readings) GetReadings(
	context.Context, *common.GetReadingsRequest,
) (*common.GetReadingsResponse, error) {
	found := map[string]*structpb.Value{"bar": structpb.NewNumberValue(2.5)}
	return &common.GetReadingsResponse{Readings: found}, nil
}

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	check(err)
	options := []rpc.ServerOption{
		rpc.WithUnauthenticated(),
		rpc.WithInstanceNames(os.Args[2:]...),
		rpc.WithExternalListenerAddress(listener.Addr().(*net.TCPAddr)),
		rpc.WithWebRTCServerOptions(rpc.WebRTCServerOptions{Enable: true}),
	}
	server, err := rpc.NewServer(zap.NewNop().Sugar(), options...)
	check(err)
	ctx := context.Background()
	check(server.RegisterServiceServer(ctx, &robot.RobotService_ServiceDesc, machine{}))
	check(server.RegisterServiceServer(ctx, &sensor.SensorService_ServiceDesc, readings{}))
	go func() { check(server.Start()) }()
	fmt.Println("serving", listener.Addr())
	check(http.Serve(listener, h2c.NewHandler(server.GRPCHandler(), &http2.Server{})))
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

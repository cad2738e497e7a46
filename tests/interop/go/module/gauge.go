package main

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const gaugeService = "acme.gauge.v1.GaugeService"

// The gauge takes and returns texts; the first field of a request names the resource.
func registerGauge(server *grpc.Server) {
	describeGauge()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: gaugeService,
		HandlerType: (*any)(nil),
		Metadata:    "acme/gauge.proto",
		Methods:     []grpc.MethodDesc{{MethodName: "Read", Handler: readGauge}},
		Streams:     []grpc.StreamDesc{{StreamName: "Watch", Handler: watchGauge, ServerStreams: true}},
	}, struct{}{})
}

func readGauge(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
	request := &wrapperspb.StringValue{}
	if err := decode(request); err != nil {
		return nil, err
	}
	return wrapperspb.String(request.Value + " reads 7"), nil
}

// Says nothing, as a stream of events that do not occur.
func watchGauge(_ any, stream grpc.ServerStream) error {
	<-stream.Context().Done()
	return nil
}

func describeGauge() {
	text := proto.String(".google.protobuf.StringValue")
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name:       proto.String("acme/gauge.proto"),
		Package:    proto.String("acme.gauge.v1"),
		Syntax:     proto.String("proto3"),
		Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{
			Name: proto.String("GaugeService"),
			Method: []*descriptorpb.MethodDescriptorProto{
				{Name: proto.String("Read"), InputType: text, OutputType: text},
				{Name: proto.String("Watch"), InputType: text, OutputType: text, ServerStreaming: proto.Bool(true)},
			},
		}},
	}, protoregistry.GlobalFiles)
	check(err)
	check(protoregistry.GlobalFiles.RegisterFile(file))
}

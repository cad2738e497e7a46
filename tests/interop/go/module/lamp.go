package main

import (
	"context"
	"math"

	commonpb "go.viam.com/api/common/v1"
	genericpb "go.viam.com/api/component/generic/v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A component of the public API.
type lamp struct {
	genericpb.UnimplementedGenericServiceServer
	module *module
}

// The numbers of zap, the logger of Go programs.
const (
	zapDuration = 8
	zapFloat    = 9
	zapString   = 15
	zapBoolean  = 4
)

// DoCommand tells what the lamp was given, or logs as a resource of a module does.
func (l *lamp) DoCommand(ctx context.Context, request *commonpb.DoCommandRequest) (*commonpb.DoCommandResponse, error) {
	if text := request.Command.Fields["log"].GetStringValue(); text != "" {
		return l.logLines(ctx, request.Name, text)
	}
	m := l.module
	m.lock.Lock()
	defer m.lock.Unlock()
	config := m.configs[request.Name]
	headers := map[string]any{}
	if given, ok := metadata.FromIncomingContext(ctx); ok {
		for name, values := range given {
			headers[name] = values[0]
		}
	}
	result, err := structpb.NewStruct(map[string]any{
		"level":   config.LogConfiguration.GetLevel(),
		"changes": m.changes[request.Name],
		"width":   config.Frame.GetGeometry().GetBox().GetDimsMm().GetX(),
		"headers": headers,
	})
	return &commonpb.DoCommandResponse{Result: result}, err
}

// Logs a line of each level that the resource is told to log, with fields as the logger sends them.
func (l *lamp) logLines(ctx context.Context, name, text string) (*commonpb.DoCommandResponse, error) {
	m := l.module
	m.lock.Lock()
	level := m.configs[name].LogConfiguration.GetLevel()
	m.lock.Unlock()
	levels := []string{"info", "error"}
	if level == "debug" {
		levels = append([]string{"debug"}, levels...)
	}
	for _, each := range levels {
		entry := &commonpb.LogEntry{
			LoggerName: "lamps.rdk:component:generic/" + name,
			Level:      each,
			Message:    text,
			Time:       timestamppb.Now(),
			Stack:      "goroutine 1 [running]",
			Caller:     mustStruct(map[string]any{"Defined": true, "File": "/src/lamp/lamp.go", "Line": 42, "Function": "f"}),
			Fields: []*structpb.Struct{
				field("lux", zapFloat, float64(int64(math.Float64bits(21.5))), ""),
				field("on", zapBoolean, 1, ""),
				field("took", zapDuration, 1.5e9, ""),
				field("where", zapString, 0, "hall"),
			},
		}
		if err := m.log(ctx, entry); err != nil {
			return nil, err
		}
	}
	return &commonpb.DoCommandResponse{Result: mustStruct(nil)}, nil
}

func field(key string, kind int, integer float64, text string) *structpb.Struct {
	return mustStruct(map[string]any{"Key": key, "Type": kind, "Integer": integer, "String": text, "Interface": nil})
}

func mustStruct(values map[string]any) *structpb.Struct {
	found, err := structpb.NewStruct(values)
	check(err)
	return found
}

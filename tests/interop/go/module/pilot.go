package main

import (
	"context"
	"sync/atomic"

	navigationpb "go.viam.com/api/service/navigation/v1"
)

// A navigation service of another version of the API than that of the Python SDK.
type pilot struct {
	navigationpb.UnimplementedNavigationServiceServer
	mode atomic.Int32
}

func (p *pilot) SetMode(_ context.Context, request *navigationpb.SetModeRequest) (*navigationpb.SetModeResponse, error) {
	p.mode.Store(int32(request.Mode))
	return &navigationpb.SetModeResponse{}, nil
}

func (p *pilot) GetMode(context.Context, *navigationpb.GetModeRequest) (*navigationpb.GetModeResponse, error) {
	return &navigationpb.GetModeResponse{Mode: navigationpb.Mode(p.mode.Load())}, nil
}

package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	commonpb "go.viam.com/api/common/v1"
	armpb "go.viam.com/api/component/arm/v1"
	camerapb "go.viam.com/api/component/camera/v1"
	sensorpb "go.viam.com/api/component/sensor/v1"
	robotpb "go.viam.com/api/robot/v1"
	visionpb "go.viam.com/api/service/vision/v1"
	"go.viam.com/utils/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func read(ctx context.Context, connection grpc.ClientConnInterface) error {
	request := &commonpb.GetReadingsRequest{Name: "sensor"}
	_, err := sensorpb.NewSensorServiceClient(connection).GetReadings(ctx, request)
	return err
}

// One call of each kind, with what came of it.
func calls(ctx context.Context, connection rpc.ClientConn, _ []string) {
	version, err := robotpb.NewRobotServiceClient(connection).GetVersion(ctx, &robotpb.GetVersionRequest{})
	check(err)
	images, err := camerapb.NewCameraServiceClient(connection).GetImages(ctx, &camerapb.GetImagesRequest{Name: "camera"})
	check(err)
	size := 0
	for _, image := range images.Images {
		size += len(image.Image)
	}
	_, missing := sensorpb.NewSensorServiceClient(connection).GetReadings(ctx, &commonpb.GetReadingsRequest{Name: "gone"})
	capture, err := visionpb.NewVisionServiceClient(connection).CaptureAllFromCamera(
		ctx, &visionpb.CaptureAllFromCameraRequest{Name: "vision", CameraName: "camera"})
	check(err)
	report(
		"version", version.Version, "image", size,
		"missing", status.Code(missing).String(), "overdue", overdue(ctx, connection),
		"moved", joints(ctx, connection), "capture has an image", capture.Image != nil,
	)
}

// Streams joint positions in both directions, with the zero limits that Go sends, and counts the replies.
func joints(ctx context.Context, connection grpc.ClientConnInterface) int {
	arm := armpb.NewArmServiceClient(connection)
	zero := 0.0
	_, err := arm.MoveThroughJointPositions(ctx, &armpb.MoveThroughJointPositionsRequest{
		Name:      "arm",
		Positions: []*armpb.JointPositions{{Values: []float64{1, 0, 0, 0, 0, 0}}},
		Options:   &armpb.MoveOptions{MaxVelDegsPerSec: &zero, MaxAccDegsPerSec2: &zero},
	})
	check(err)
	positions, err := arm.GetJointPositions(ctx, &armpb.GetJointPositionsRequest{Name: "arm"})
	check(err)
	return int(positions.Positions.Values[0] + 0.5)
}

// Waits for a tick that does not come, and returns why it gave up.
func overdue(ctx context.Context, connection grpc.ClientConnInterface) string {
	late, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	ticks, err := openTicks(late, connection)
	for err == nil {
		_, err = ticks.Recv()
	}
	// It need not wait for the server to say so; its WebRTC stack says that the call was cancelled.
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return codes.DeadlineExceeded.String()
	}
	return status.Code(err).String()
}

// burst CALLS: calls started at the same moment, right after connecting.
func burst(ctx context.Context, connection rpc.ClientConn, arguments []string) {
	var group sync.WaitGroup
	var lock sync.Mutex
	failed := map[string]int{}
	for i := 0; i < number(arguments[0]); i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := read(ctx, connection); err != nil {
				lock.Lock()
				failed[err.Error()]++
				lock.Unlock()
			}
		}()
	}
	group.Wait()
	report("failed", failed)
}

// cancel CALLS: calls that are given up after a millisecond, then one that must be answered.
func cancelled(ctx context.Context, connection rpc.ClientConn, arguments []string) {
	var group sync.WaitGroup
	places := make(chan bool, 64)
	for i := 0; i < number(arguments[0]); i++ {
		group.Add(1)
		places <- true
		go func() {
			defer group.Done()
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_ = read(short, connection)
			<-places
		}()
	}
	group.Wait()
	began := time.Now()
	check(read(ctx, connection))
	report("seconds", time.Since(began).Seconds())
}

// headers BYTES: a call with that much metadata.
func headers(ctx context.Context, connection rpc.ClientConn, arguments []string) {
	value := strings.Repeat("x", number(arguments[0]))
	err := read(metadata.AppendToOutgoingContext(ctx, "x-large", value), connection)
	report("status", status.Code(err).String(), "message", status.Convert(err).Message())
}

// follow SECONDS: reads in a loop, and reports each change between success and failure.
func follow(ctx context.Context, connection rpc.ClientConn, arguments []string) {
	end := time.Now().Add(time.Duration(number(arguments[0])) * time.Second)
	works := false
	for time.Now().Before(end) {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		err := read(short, connection)
		cancel()
		if (err == nil) != works {
			works = err == nil
			report("works", works)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

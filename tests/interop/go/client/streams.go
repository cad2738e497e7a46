package main

import (
	"context"
	"time"

	"github.com/viamrobotics/webrtc/v3"
	boardpb "go.viam.com/api/component/board/v1"
	motorpb "go.viam.com/api/component/motor/v1"
	robotpb "go.viam.com/api/robot/v1"
	streampb "go.viam.com/api/stream/v1"
	"go.viam.com/utils/rpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

const sessionKey = "viam-sid"

// Opens a stream of ticks as the board client in Go does: it waits for one message, and throws it away.
func openTicks(ctx context.Context, connection grpc.ClientConnInterface) (boardpb.BoardService_StreamTicksClient, error) {
	request := &boardpb.StreamTicksRequest{Name: "board", PinNames: []string{"interrupt"}}
	ticks, err := boardpb.NewBoardServiceClient(connection).StreamTicks(ctx, request)
	if err == nil {
		_, err = ticks.Recv()
	}
	return ticks, err
}

// events COUNT: that many streams of ticks, of which each gets the next tick.
func events(ctx context.Context, connection rpc.ClientConn, arguments []string) {
	began := time.Now()
	ticks := make([]boardpb.BoardService_StreamTicksClient, number(arguments[0]))
	for i := range ticks {
		stream, err := openTicks(ctx, connection)
		check(err)
		ticks[i] = stream
	}
	opened := time.Since(began).Seconds()
	// Read at the same time: over WebRTC, a stream that is not read blocks all others of the client.
	got := make(chan bool)
	for _, stream := range ticks {
		go func() { got <- waitForHigh(stream) }()
	}
	board := boardpb.NewBoardServiceClient(connection)
	for _, high := range []bool{false, true} {
		_, err := board.SetGPIO(ctx, &boardpb.SetGPIORequest{Name: "board", Pin: "1", High: high})
		check(err)
	}
	count := 0
	for range ticks {
		if <-got {
			count++
		}
	}
	report("ticks", count, "seconds", opened)
}

// Reads ticks until the interrupt is high. Returns whether there was nothing else.
func waitForHigh(ticks boardpb.BoardService_StreamTicksClient) bool {
	for {
		tick, err := ticks.Recv()
		check(err)
		if tick.PinName != "interrupt" {
			return false
		}
		if tick.High {
			return true
		}
	}
}

// move: turns a motor within a session until it is killed.
func move(ctx context.Context, connection rpc.ClientConn, _ []string) {
	robot := robotpb.NewRobotServiceClient(connection)
	session, err := robot.StartSession(ctx, &robotpb.StartSessionRequest{})
	check(err)
	within := metadata.AppendToOutgoingContext(ctx, sessionKey, session.Id)
	motor := motorpb.NewMotorServiceClient(connection)
	_, err = motor.SetPower(within, &motorpb.SetPowerRequest{Name: "motor", PowerPct: 1})
	check(err)
	report("window", session.HeartbeatWindow.AsDuration().Seconds())
	for {
		_, err := robot.SendSessionHeartbeat(ctx, &robotpb.SendSessionHeartbeatRequest{Id: session.Id})
		check(err)
		time.Sleep(session.HeartbeatWindow.AsDuration() / 5)
	}
}

// videos STEP...: adds (+NAME) and removes (-NAME) videos, and reports the track of each that was added.
func videos(ctx context.Context, connection rpc.ClientConn, steps []string) {
	tracks := make(chan string, 16)
	connection.PeerConn().OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
		if _, _, err := track.ReadRTP(); err == nil {
			tracks <- track.StreamID()
		}
	})
	service := streampb.NewStreamServiceClient(connection)
	for _, step := range steps {
		name := step[1:]
		if step[0] == '-' {
			_, err := service.RemoveStream(ctx, &streampb.RemoveStreamRequest{Name: name})
			check(err)
			continue
		}
		_, err := service.AddStream(ctx, &streampb.AddStreamRequest{Name: name})
		check(err)
		select {
		case found := <-tracks:
			report("asked", name, "track", found)
		case <-time.After(10 * time.Second):
			report("asked", name, "track", nil)
		}
	}
}

// A client on Go's stacks: grpc-go, and pion for WebRTC.
//
// Run as `client [FLAGS] SCENARIO [ARGUMENTS]`. It prints what it found, a line of JSON each.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/viamrobotics/webrtc/v3"
	"go.uber.org/zap"
	"go.viam.com/utils/rpc"
)

var (
	address   = flag.String("address", "", "HOST:PORT of the machine, or its name in the cloud")
	transport = flag.String("transport", "plain", "plain, tls, webrtc or cloud")
	signaling = flag.String("signaling", "", "HOST:PORT of the cloud")
	keyID     = flag.String("key-id", "", "the ID of an API key")
	key       = flag.String("key", "", "the API key")
)

const deadline = 60 * time.Second

var scenarios = map[string]func(context.Context, rpc.ClientConn, []string){
	"burst":   burst,
	"calls":   calls,
	"cancel":  cancelled,
	"events":  events,
	"follow":  follow,
	"headers": headers,
	"move":    move,
	"videos":  videos,
}

func main() {
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	connection, err := dial(ctx)
	check(err)
	defer connection.Close()
	scenarios[flag.Arg(0)](ctx, connection, flag.Args()[1:])
}

// Connects, without any address outside of this computer.
func dial(ctx context.Context) (rpc.ClientConn, error) {
	options := []rpc.DialOption{rpc.WithDialMulticastDNSOptions(rpc.DialMulticastDNSOptions{Disable: true})}
	credentials := rpc.Credentials{Type: rpc.CredentialsTypeAPIKey, Payload: *key}
	if *key != "" {
		options = append(options, rpc.WithEntityCredentials(*keyID, credentials))
	}
	encrypted := *transport == "tls"
	if encrypted {
		options = append(options, rpc.WithTLSConfig(&tls.Config{InsecureSkipVerify: true})) // a test's own certificate
	} else {
		options = append(options, rpc.WithInsecure(), rpc.WithAllowInsecureWithCredentialsDowngrade())
	}
	logger := zap.NewNop().Sugar()
	if *transport == "plain" || *transport == "tls" {
		return rpc.DialDirectGRPC(ctx, *address, logger, options...)
	}
	server := *signaling
	if server == "" {
		server = *address
	}
	meeting := rpc.DialWebRTCOptions{
		SignalingInsecure:      true,
		SignalingServerAddress: server,
		Config:                 &webrtc.Configuration{}, // no public STUN servers
	}
	if *key != "" {
		meeting.SignalingAuthEntity, meeting.SignalingCreds = *keyID, credentials
	}
	options = append(options, rpc.WithDisableDirectGRPC(), rpc.WithWebRTCOptions(meeting))
	return rpc.DialWebRTC(ctx, server, *address, logger, options...)
}

// Prints names and values as a line of JSON.
func report(values ...any) {
	found := map[string]any{}
	for i := 0; i < len(values); i += 2 {
		found[values[i].(string)] = values[i+1]
	}
	line, err := json.Marshal(found)
	check(err)
	fmt.Println(string(line))
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// What a page needs to talk to a machine, as one script.
import * as sdk from "@viamrobotics/sdk";
import { createGrpcWebTransport } from "@connectrpc/connect-web";

globalThis.machine = { sdk, createGrpcWebTransport };

"""Sends back what it gets, on a port of this computer. Run as `echo_server.py PORT`."""

import asyncio
import sys


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1000):
        writer.write(data)
        await writer.drain()
    writer.close()


async def main(port: int) -> None:
    async with await asyncio.start_server(echo, "127.0.0.1", port) as server:
        print("listening", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

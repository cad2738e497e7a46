"""The cards of what senses and computes, and calls of any method, used as people use them."""

from __future__ import annotations

import asyncio
import base64
import io
import itertools
import re
import struct
import wave
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect
from tests.support import control_page
from tests.support.control_page import (
    REFUSED,
    log_in_as,
    needs_browser,
    open_machine,
    open_page,
    open_view,
    wait_for_webrtc,
)
from tests.support.machine.login import config
from tests.support.machine.running import run_server
from viam.components.audio_out import AudioOut
from viam.components.base import Base
from viam.components.camera import Camera
from viam.components.motor import Motor
from viam.components.movement_sensor import MovementSensor
from viam.proto.common import AudioInfo
from viam.services.navigation import Navigation

from cogwork.cli.demo.run import DEMO_MODEL, build_config

pytestmark = [needs_browser, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(240)]

HOSTILE = "<img src=x onerror=alert(1)>\u202e{@html 1}"


def fake(subtype: str, kind: str = "component", **attributes: Any) -> dict[str, Any]:
    api = f"rdk:{kind}:{subtype}"
    return {"name": subtype, "api": api, "model": "fake", "attributes": attributes}


DEMO = build_config(DEMO_MODEL / "conveyor.onnx", "onnx_cpu", "")
"""Has a camera "belt" with color and depth, a model "parts" and a vision service "inspector"."""
COMPONENTS = [
    DEMO["components"][0],
    fake("audio_in", hears="audio_out"),
    fake("audio_out"),
    {**fake("base"), "frame": {"parent": "world", "translation": {"x": 100, "y": 20, "z": 3}}},
    fake("generic"),
    fake("motor", max_rpm=6000),
    fake("movement_sensor", base="base", compass_heading=90, altitude=31),
    fake(
        "pose_tracker",
        bodies=[{"name": HOSTILE, "path": "still", "at": {"x": 12.5, "y": -3, "z": 7}}],
    ),
    fake("power_sensor", voltage=12.5, current=2, motor="motor", motor_current=4),
    fake("sensor", readings={HOSTILE: HOSTILE, "level": 7}),
    {
        **fake("sensor", readings={"a" * 3000: "b" * 3000} | {f"m{at}": at for at in range(250)}),
        "name": "meters",
    },
]
SERVICES = [
    *DEMO["services"],
    fake(
        "discovery",
        "service",
        resources=[
            {
                "name": "gate",
                "api": "rdk:component:camera",
                "model": "webcam",
                "attributes": {"video_path": HOSTILE},
            }
        ],
    ),
    fake("motion", "service"),
    fake("navigation", "service", linear_m_per_sec=2),
    fake("slam", "service", speed_mm_per_sec=0),
    fake("world_state_store", "service"),
]
MACHINE = {"components": COMPONENTS, "services": SERVICES}


class Machine(control_page.Machine):
    """A machine with a page that shows some of its cards, and the Python SDK to check them."""

    @property
    def card(self) -> Locator:
        return self.page.locator("[data-card]")

    async def show(self, name: str) -> None:
        """Show a new card of a resource."""
        # A card that is there already would keep what was chosen on it.
        await open_view(self.page, self.server.url, "control")
        found = next(each for each in [*COMPONENTS, *SERVICES] if each["name"] == name)
        await open_view(self.page, self.server.url, "control", pin=f"{found['api']}/{name}")
        await wait_for_webrtc(self.page)

    def field(self, label: str) -> Locator:
        return self.card.get_by_label(label, exact=True)

    async def click(self, label: str) -> None:
        await self.card.get_by_role("button", name=label, exact=True).click()

    async def fill(self, label: str, text: str) -> None:
        await self.field(label).fill(text)

    async def choose(self, label: str, option: str) -> None:
        await self.field(label).select_option(option)

    async def download(self, label: str) -> tuple[str, bytes]:
        """Click a button, and return the name and the content of the file that it saves."""
        async with self.page.expect_download() as arriving:
            await self.click(label)
        download = await arriving.value
        data = (await download.path()).read_bytes()
        await download.delete()
        return download.suggested_filename, data

    async def call(self, method: str, request: str | None = None) -> None:
        """Call a method of the resource, with the prefilled request unless another one is given."""
        await self.open_calls()
        await self.choose("Method", method)
        if request is not None:
            await self.fill("Request", request)
        form = self.card.get_by_role("form", name="Call a method")
        await form.get_by_role("button", name="Call").click()

    async def open_calls(self) -> None:
        button = self.card.locator("header").get_by_role("button", name="Call")
        if await button.get_attribute("aria-pressed") == "false":
            await button.click()

    async def see(self, text: str) -> None:
        """Wait until the card has the text."""
        await expect(self.card.get_by_text(text).first).to_be_visible()

    async def text(self) -> str:
        return await self.card.inner_text()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any, browser: Browser) -> AsyncIterator[Machine]:
    directory: Path = tmp_path_factory.mktemp("machine")
    async with open_machine(MACHINE, directory, browser) as opened:
        yield Machine(opened.server, opened.page, opened.robot)


async def test_camera_shows_live_video_until_its_card_is_closed(machine: Machine) -> None:
    await machine.show("belt")
    await machine.see("640 × 480 px, video")
    brightness = await machine.card.locator("video").evaluate(
        """(video) => {
          window.watched = video.srcObject.getVideoTracks()[0];
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [video.videoWidth, video.videoHeight];
          const context = canvas.getContext("2d");
          context.drawImage(video, 0, 0);
          const { data } = context.getImageData(0, 0, 640, 480);
          return data.filter((_, index) => index % 4 === 0).sort().at(-1);
        }"""
    )
    assert brightness > 100
    await machine.click("Close the card")
    # The machine stops sending.
    await machine.page.wait_for_function('() => window.watched.readyState === "ended"')


async def test_camera_sends_nothing_while_the_page_is_hidden(machine: Machine) -> None:
    await machine.show("belt")
    await machine.see("640 × 480 px, video")
    await machine.card.locator("video").evaluate(
        """(video) => {
          window.watched = video.srcObject.getVideoTracks()[0];
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    await machine.page.wait_for_function('() => window.watched.readyState === "ended"')
    await machine.page.evaluate(
        """
        delete document.hidden;
        document.dispatchEvent(new Event("visibilitychange"));
        """
    )
    await machine.page.wait_for_function(
        """() => {
          const [track] = document.querySelector("video").srcObject?.getVideoTracks() ?? [];
          return track && !track.muted;
        }"""
    )


async def test_camera_video_starts_again(machine: Machine) -> None:
    await machine.show("belt")
    await machine.see("640 × 480 px, video")
    await open_view(machine.page, machine.server.url, "logs")
    await machine.show("belt")
    await machine.see("640 × 480 px, video")


async def test_camera_shows_pictures_until_its_video_works(machine: Machine) -> None:
    await machine.show("motor")
    await machine.page.reload()
    await wait_for_webrtc(machine.page)
    await machine.page.evaluate(
        """() => {
          const send = RTCDataChannel.prototype.send;
          window.tries = [];
          // The machine knows no method of the name that it is asked for.
          const spoil = (data) => {
            const bytes = new Uint8Array(data.slice());
            const at = new TextDecoder("latin1").decode(bytes).indexOf("AddStream");
            if (at < 0) return data;
            window.tries.push(performance.now());
            if (window.tries.length < 5) bytes[at] = "B".charCodeAt(0);
            return bytes;
          };
          RTCDataChannel.prototype.send = function (data) {
            return send.call(this, spoil(data));
          };
          window.restore = () => (RTCDataChannel.prototype.send = send);
        }"""
    )
    await machine.show("belt")
    await machine.see("no video: ")
    await machine.see("640 × 480 px, video")
    tries = await machine.page.evaluate("(window.restore(), window.tries)")
    # The SDK asks twice each time.
    first, second = (after - before for before, after in itertools.pairwise(tries[::2]))
    assert first >= 1000
    assert second >= 2000


async def test_camera_takes_snapshots(machine: Machine) -> None:
    await machine.show("belt")
    for rate, kind in (("live video", "640 × 480 px, video"), ("5 each second", "640 × 480 px")):
        await machine.choose("Rate of pictures", rate)
        await machine.see(kind)
        name, data = await machine.download("Snapshot")
        assert name.startswith("belt-")
        assert data.startswith(b"\xff\xd8\xff")


async def test_camera_shows_depth_in_color_with_its_range(machine: Machine) -> None:
    images, _ = await Camera.from_robot(machine.robot, "belt").get_images(
        filter_source_names=["depth"]
    )
    depths = [value for row in images[0].bytes_to_depth_array() for value in row if value]
    await machine.show("belt")
    await machine.see("640 × 480 px, video")
    await machine.choose("Image", "depth")
    # The belt does not move up or down.
    await machine.see(f"far {max(depths)} mm")
    picture = machine.card.get_by_role("img", name="Picture of belt")
    colors = await picture.locator("canvas").evaluate(
        """(canvas) => {
          const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          const colors = new Uint32Array(pixels.data.buffer);
          return [canvas.width, canvas.height, new Set(colors).size];
        }"""
    )
    assert colors[:2] == [640, 480]
    assert colors[2] >= 3


async def test_camera_shows_its_point_cloud(machine: Machine) -> None:
    await machine.show("belt")
    await machine.click("Point cloud")
    await expect(machine.card.get_by_label("Point cloud of belt").first).to_be_visible()
    await machine.click("Point cloud")


async def test_camera_is_asked_for_its_properties_until_it_answers(machine: Machine) -> None:
    refused = 0

    async def refuse_first(route: Route) -> None:
        nonlocal refused
        refused += 1
        if refused > 1:
            await route.continue_()
        else:
            headers = {"grpc-status": "14", "grpc-message": "the camera wakes up"}
            await route.fulfill(content_type="application/grpc-web+proto", headers=headers)

    method = "**/viam.component.camera.v1.CameraService/GetProperties"
    await machine.page.route(method, refuse_first)
    await machine.show("belt")
    await machine.see("the camera wakes up")
    await expect(machine.card.get_by_role("button", name="Point cloud")).to_be_visible()
    await expect(machine.card.get_by_text("the camera wakes up")).not_to_be_attached()
    await machine.page.unroute_all()


async def test_movement_sensor_follows_a_base(machine: Machine) -> None:
    sensor = MovementSensor.from_robot(machine.robot, "movement_sensor")
    await machine.show("movement_sensor")
    await machine.see("altitude")
    await expect(machine.card.get_by_role("img", name="Compass: 90.0°, E")).to_be_visible()
    await Base.from_robot(machine.robot, "base").move_straight(distance=500, velocity=1000)
    place, altitude = await sensor.get_position()
    await machine.see(f"{place.longitude:.7f}")
    assert altitude == 31
    assert "31 m" in await machine.text()


async def test_path_is_drawn_again_in_the_colors_of_another_theme(machine: Machine) -> None:
    await machine.show("base")
    canvas = await machine.card.locator("canvas").element_handle()
    is_drawn = "([each, before]) => each.width > 300 && each.toDataURL() !== before"
    await machine.page.wait_for_function(is_drawn, arg=[canvas, ""])
    before = await canvas.evaluate("(each) => each.toDataURL()")
    await machine.page.emulate_media(color_scheme="dark")
    await machine.page.wait_for_function(is_drawn, arg=[canvas, before])
    await machine.page.emulate_media(color_scheme="light")


async def test_power_sensor_shows_what_a_motor_draws(machine: Machine) -> None:
    await machine.show("power_sensor")
    await machine.see("12.5")
    await machine.see("25")
    motor = Motor.from_robot(machine.robot, "motor")
    await motor.set_power(0.5)
    await machine.see("50")
    await motor.stop()
    assert "V DC" in await machine.text()


async def test_poses_of_bodies_with_hostile_names_are_shown_as_text(machine: Machine) -> None:
    await machine.show("pose_tracker")
    await machine.see("12.5, -3, 7")
    text = await machine.text()
    assert "<img src=x onerror=alert(1)>" in text
    assert "\u202e" not in text
    await expect(machine.card.locator("img")).to_have_count(0)


async def test_hostile_readings_are_shown_as_text(machine: Machine) -> None:
    await machine.show("sensor")
    await machine.see("level")
    text = await machine.text()
    assert text.count("<img src=x onerror=alert(1)>") == 2
    assert "\u202e" not in text
    await expect(machine.card.locator("img")).to_have_count(0)


async def test_long_and_many_readings_are_cut(machine: Machine) -> None:
    await machine.show("meters")
    await machine.see("and 51 more")
    text = await machine.text()
    assert text.count("(3000 characters)") == 2
    assert len(text) < 5000


async def test_speaker_plays_a_tone(machine: Machine) -> None:
    await machine.show("audio_out")
    await machine.fill("Seconds", "0.2")
    await machine.click("Play the tone")
    await machine.see("played 440 Hz: 0.2 s")
    last = await last_played(machine)
    assert last["seconds"] == pytest.approx(0.2)
    assert last["finished"] is True
    samples = [each[0] for each in struct.iter_unpack("<h", base64.b64decode(last["audio_base64"]))]
    assert 0.29 < max(samples) / 32768 < 0.31
    crossings = sum(a < 0 <= b for a, b in itertools.pairwise(samples))
    assert crossings == pytest.approx(88, abs=2)


async def test_button_keeps_the_focus_while_it_is_busy(machine: Machine) -> None:
    await machine.show("audio_out")
    focused = machine.page.locator(":focus")
    await machine.card.get_by_role("button", name="Play the tone").focus()
    await machine.page.keyboard.press("Enter")
    busy = machine.card.get_by_role("button", name="Playing", disabled=True)
    await expect(busy).to_be_visible()
    await expect(focused).to_have_text("Playing")
    await machine.see("played 440 Hz")
    await expect(focused).to_have_text("Play the tone")


async def test_speaker_plays_a_file(machine: Machine) -> None:
    data = bytes(range(200)) * 4
    await machine.show("audio_out")
    await machine.field("WAV file").set_input_files(
        {"name": "a.wav", "mimeType": "audio/wav", "buffer": wav_file(data, rate=8000, channels=2)}
    )
    await machine.click("Play the file")
    await machine.see("played a.wav")
    last = await last_played(machine)
    assert base64.b64decode(last["audio_base64"]) == data
    assert (last["sample_rate_hz"], last["num_channels"]) == (8000, 2)


async def test_speaker_refuses_other_files(machine: Machine) -> None:
    await machine.show("audio_out")
    await machine.field("WAV file").set_input_files(
        {"name": "a.wav", "mimeType": "audio/wav", "buffer": b"not a sound"}
    )
    await machine.click("Play the file")
    await machine.see("this is not a WAV file")


async def test_microphone_shows_its_level_and_records_what_it_hears(machine: Machine) -> None:
    speaker = AudioOut.from_robot(machine.robot, "audio_out")
    await machine.show("audio_in")
    await machine.fill("Seconds to record", "1")
    tone = struct.pack("<44100h", *(16384 if n // 50 % 2 else -16384 for n in range(44100)))
    playing = asyncio.create_task(play(speaker, tone * 3))
    await machine.click("Show the level")
    await machine.see("-6.0 dB")
    await machine.click("Show the level")
    await machine.click("Record")
    await expect(machine.card.locator("audio")).to_be_visible()
    _, file = await machine.download("Download")
    await playing
    with wave.open(io.BytesIO(file)) as recording:
        assert (recording.getframerate(), recording.getnchannels()) == (44100, 1)
        assert recording.getnframes() == 44100
        samples = [each[0] for each in struct.iter_unpack("<h", recording.readframes(44100))]
    assert {min(samples), max(samples)} == {-16384, 16384}
    duration = await machine.card.locator("audio").evaluate("(each) => each.duration")
    assert duration == pytest.approx(1)


async def test_model_shows_its_tensors_and_labels_and_can_be_timed(machine: Machine) -> None:
    await machine.show("parts")
    await machine.see("Inputs")
    await machine.card.get_by_text(re.compile("labels$")).click()
    labels = await machine.card.get_by_label("Labels").inner_text()
    assert {"gear", "bolt", "nut"} <= set(labels.split())
    await machine.click("Measure a run")
    await machine.see("median of 5 runs")


async def test_vision_service_draws_what_it_finds(machine: Machine) -> None:
    await machine.show("inspector")
    await machine.click("Once")
    await machine.see("detection")
    boxes = await machine.card.locator("[data-box]").count()
    shown = await machine.text()
    assert f"{boxes} detection" in shown
    link = machine.card.get_by_role("link", name="Open in Vision")
    await expect(link).to_have_attribute("href", "#/vision?camera=belt&service=inspector")


async def test_locations_are_added_reached_and_removed(machine: Machine) -> None:
    navigation = Navigation.from_robot(machine.robot, "navigation")
    await machine.show("navigation")
    await machine.fill("Meters along x, or east", "1.5")
    await machine.fill("Meters along y, or north", "0.5")
    await machine.fill("Name of the location", "dock")
    await machine.click("Add location")
    await machine.see("1.50, 0.50 m")
    (location,) = await navigation.list_locations()
    assert (location.name, location.position.pose.x, location.position.pose.y) == (
        "dock",
        1500,
        500,
    )
    await machine.click("Go to dock")
    await machine.see("dock: succeeded")
    assert (await navigation.get_position()).pose.x == pytest.approx(1500, abs=1)
    await machine.click("Remove dock")
    await machine.see("There are no locations yet.")
    assert not await navigation.list_locations()


async def test_slam_shows_position_mode_and_map(machine: Machine) -> None:
    await machine.show("slam")
    await machine.see("localize only")
    await machine.click("Point cloud")
    await expect(machine.card.get_by_label("Map of slam").first).to_be_visible()


async def test_discovery_lists_configurations(machine: Machine) -> None:
    await machine.show("discovery")
    await machine.click("Discover")
    await machine.see("1 resource found")
    shown = machine.card.get_by_role("region", name="Configuration of gate")
    await expect(shown).to_contain_text('"api": "rdk:component:camera"')
    await expect(shown).to_contain_text("<img src=x onerror=alert(1)>")


async def test_transforms_of_a_world_are_listed(machine: Machine) -> None:
    await machine.show("world_state_store")
    await machine.see("transforms")
    table = machine.card.get_by_role("table", name="Transforms")
    await expect(table.get_by_role("row").nth(1)).to_be_visible()


async def test_motion_service_tells_where_a_component_is(machine: Machine) -> None:
    await machine.show("motion")
    await machine.choose("Component", "base")
    await machine.click("Get pose")
    await machine.see("100, 20, 3")
    await machine.choose("Component", "motor")
    await machine.click("Get pose")
    await expect(machine.card.get_by_role("alert")).to_contain_text("motor")


async def test_any_method_is_called_with_json(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "motor")
    await motor.reset_zero_position(0)
    await machine.show("motor")
    await machine.open_calls()
    await machine.choose("Method", "GoFor")
    await expect(machine.field("Request")).to_have_value(re.compile('"revolutions": 0'))
    await machine.call("GoFor", '{"name": "motor", "rpm": 6000, "revolutions": 3}')
    await machine.see("GoFor: ")
    assert await motor.get_position() == pytest.approx(3)
    await machine.call("GetPosition")
    await machine.see('"position": 3')


async def test_call_shows_the_machines_own_sentence(machine: Machine) -> None:
    await machine.show("motor")
    await machine.call("GetPosition", '{"name": "nobody"}')
    await expect(machine.card.get_by_role("alert")).to_contain_text("nobody")
    await machine.call("GetPosition", '{"title": "motor"}')
    await expect(machine.card.get_by_role("alert")).to_contain_text("title")


async def test_first_messages_of_a_stream_are_shown(machine: Machine) -> None:
    await machine.show("world_state_store")
    await machine.open_calls()
    await machine.choose("Method", "StreamTransformChanges")
    await machine.fill("Number of messages", "2")
    await machine.call("StreamTransformChanges")
    await machine.see("2 messages")


async def test_methods_that_the_sdk_does_not_know_are_reflected(machine: Machine) -> None:
    await machine.show("navigation")
    await machine.call("GetProperties")
    await machine.see("MAP_TYPE_LOCAL")


async def test_card_is_kept_while_the_status_is_polled(machine: Machine) -> None:
    await machine.show("generic")
    await machine.fill("Command", '{"half": ')
    for _ in range(3):
        async with machine.page.expect_request("**/status.json*"):
            pass
    await expect(machine.field("Command")).to_have_value('{"half": ')


async def test_viewer_may_look_and_only_that(browser: Browser, tmp_path: Path) -> None:
    names = ("generic", "audio_out", "motor")
    components = [each for each in COMPONENTS if each["name"] in names]
    locked = {**config("owner", "viewer"), "components": components, "services": [SERVICES[-3]]}
    pins = [f"{each['api']}/{each['name']}" for each in [*components, SERVICES[-3]]]
    async with (
        run_server(locked, tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        await page.goto(server.url)
        await log_in_as(page, "viewer")
        await open_view(page, server.url, "control", pin=pins)
        await expect(page.get_by_text("A viewer may send no commands.")).to_be_visible()
        await expect(page.get_by_text("A viewer may play nothing.")).to_be_visible()
        motor = page.locator("[data-card$='/motor']")
        await motor.get_by_role("button", name="Call").click()
        methods = await motor.get_by_label("Method").locator("option").all_inner_texts()
        assert "GetPosition" in methods
        assert not {"SetPower", "DoCommand"} & set(methods)
        navigation = page.locator("[data-card$='/navigation']")
        await expect(navigation.get_by_text("There are no locations yet.")).to_be_visible()
        await expect(navigation.locator("button:not(header *)")).to_have_count(0)


async def last_played(machine: Machine) -> Any:
    return await AudioOut.from_robot(machine.robot, "audio_out").do_command({"last_played": True})


async def play(speaker: AudioOut, data: bytes) -> None:
    info = AudioInfo(codec="pcm16", sample_rate_hz=44100, num_channels=1)
    await speaker.play(data, info)


def wav_file(data: bytes, rate: int, channels: int) -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(data)
    return file.getvalue()

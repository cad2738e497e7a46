import { expect, it } from 'vitest';
import schema from '../../../../schemas/machine.schema.json';
import type { Schema } from './json_schema';
import { listOffers, offerDevice, searchOffers, titleOf } from './picker';
import { listModels } from './resources';

const MODELS = listModels(schema as unknown as Schema);
const OFFERS = listOffers(MODELS, [{ moduleName: 'acme', model: 'acme:lamps:bright', api: 'acme:component:lamp' }]);

function search(typed: string): string[] {
  return searchOffers(OFFERS, typed).flatMap((group) => group.offers.map((each) => `${group.title}: ${each.model.model}`));
}

it('shows everything at first, what needs no hardware last', () => {
  expect(search('')).toHaveLength(MODELS.length + 1);
  const cameras = search('').filter((each) => each.startsWith('Camera'));
  expect(cameras.at(-1)).toBe('Camera: fake');
});

it('finds by what one wants', () => {
  expect(search('camera')[0]).toMatch(/^Camera: /);
  expect(search('motor')[0]).toBe('Motor: gpio');
  expect(search('rtsp')).toContain('Camera: ffmpeg');
  expect(search('usb')).toEqual(['Camera: webcam']);
  expect(search('relay')).toContain('Switch: gpio');
  expect(search('gps')[0]).toMatch(/^Movement sensor/);
  expect(search('joystick')[0]).toBe('Gamepad: gamepad');
  expect(search('onnx')).toContain('ML model: onnx_cpu');
  expect(search('no such thing')).toEqual([]);
});

it('needs every word', () => {
  expect(search('motor gpio')).toEqual(['Motor: gpio']);
  expect(search('gpio motor')).toEqual(['Motor: gpio']);
});

it('has the models of modules, and devices', () => {
  expect(search('lamp')).toEqual(['Lamp: acme:lamps:bright']);
  expect(search('acme')).toEqual(['Lamp: acme:lamps:bright']);
  const device = offerDevice({ name: 'eye', api: 'rdk:component:camera', model: 'webcam', attributes: { video_path: '/dev/video0' } });
  expect(device.model.description).toBe('Found on this computer · /dev/video0');
  expect(searchOffers([device], 'eye')).toHaveLength(1);
});

it('has a title for every API', () => {
  for (const { api } of MODELS) expect(titleOf(api)).toMatch(/^[A-Z]/);
});

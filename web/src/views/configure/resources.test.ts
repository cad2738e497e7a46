import { expect, it } from 'vitest';
import schema from '../../../../schemas/machine.schema.json';
import { readText } from '../../lib/config_text';
import { schemasAt, propertiesOf, type Schema } from './json_schema';
import { addResource, listModels, listResources, resolveNames } from './resources';

const root = schema as unknown as Schema;
const TEXT = '{\n  // what it sees\n  "components": [\n    {"name": "belt", "api": "rdk:component:camera", "model": "fake"}\n  ]\n}\n';

it('lists the built-in models', () => {
  expect(listModels(root)).toContainEqual({
    section: 'components',
    api: 'rdk:component:camera',
    model: 'webcam',
    description: 'A camera that is connected to this computer, such as a USB webcam.',
  });
  expect(listModels(root).every((each) => each.description.endsWith('.'))).toBe(true);
  expect(listModels(root).map((each) => `${each.section} ${each.api} ${each.model}`)).toContain('services rdk:service:vision mlmodel');
});

it('adds a resource to a text and keeps its comments', () => {
  const model = { section: 'services', api: 'rdk:service:vision', model: 'fake' } as const;
  const added = addResource(TEXT, model, 'eyes');
  expect(added).toContain('// what it sees');
  expect(listResources(readText(added)).map((each) => each.name)).toEqual(['belt', 'eyes']);
  expect(listResources(readText(addResource('', model, 'eyes'))).map((each) => each.api)).toEqual(['rdk:service:vision']);
});

it('names APIs and models as the machine reads them', () => {
  const document = {
    components: [
      { name: 'a', type: 'camera', model: 'fake' },
      { name: 'b', namespace: 'acme', type: 'lamp', model: { namespace: 'acme', model_family: 'x', name: 'y' } },
      { name: 'c', api: { namespace: 'rdk', type: 'component', subtype: 'motor' }, model: 'rdk:builtin:fake' },
      { name: 'd', api: null, type: 'sensor', namespace: null, model: 'fake' },
      { name: 'e', api: 'rdk:component:arm', type: 'ignored', model: 'fake' },
    ],
    services: [{ type: 'motion' }, { name: null, api: 'rdk:service:vision', model: null, attributes: null }, { name: 1 }],
  };
  expect(listResources(document).map(({ api, name, model }) => `${api}/${name} ${model}`)).toEqual([
    'rdk:component:camera/a fake',
    'acme:component:lamp/b acme:x:y',
    'rdk:component:motor/c rdk:builtin:fake',
    'rdk:component:sensor/d fake',
    'rdk:component:arm/e fake',
    'rdk:service:motion/builtin builtin',
    'rdk:service:vision/builtin builtin',
    '/ builtin',
  ]);
});

it('knows the attributes of a resource in an older file', () => {
  const document = resolveNames({ components: [{ name: 'a', type: 'camera', model: 'webcam' }] });
  const fields = propertiesOf(root, schemasAt(root, document, ['components', 0, 'attributes']));
  expect([...fields.keys()]).toContain('video_path');
});

it('lists nothing of what is not a configuration', () => {
  for (const each of [undefined, null, 1, 'x', [], { components: {} }, { components: [null, 1, []] }]) {
    expect(listResources(each)).toEqual([]);
    resolveNames(each);
  }
});

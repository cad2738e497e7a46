import { describe, expect, it } from 'vitest';
import schema from '../../../../schemas/machine.schema.json';
import { flatten, propertiesOf, schemasAt, valuesOf, type Schema } from './json_schema';

const root = schema as unknown as Schema;
const document = {
  components: [{ name: 'belt', api: 'rdk:component:camera', model: 'fake', attributes: {} }],
  services: [{ name: 'eyes', api: 'rdk:service:vision', model: 'mlmodel' }],
};

describe('the schema of a machine', () => {
  it('has its sections', () => {
    expect([...propertiesOf(root, schemasAt(root, document, [])).keys()]).toContain('components');
  });

  it('knows the attributes of a model', () => {
    const names = [...propertiesOf(root, schemasAt(root, document, ['components', 0, 'attributes'])).keys()];
    expect(names).toContain('scene');
    expect(names).not.toContain('mlmodel_name');
    const vision = propertiesOf(root, schemasAt(root, document, ['services', 0, 'attributes']));
    expect(vision.get('mlmodel_name')?.description).toBe('Name of the ML model service to run.');
  });

  it('knows the values of an enumeration', () => {
    expect(valuesOf(schemasAt(root, document, ['components', 0, 'api']))).toContain('rdk:component:motor');
    expect(valuesOf(schemasAt(root, document, ['services', 0, 'attributes', 'letterbox']))).toEqual([true, false]);
  });
});

describe('a flat schema', () => {
  const step = root.$defs!.TransformAttributes!.properties!.pipeline!.items!;

  it('has the types and parts of what it refers to, without null', () => {
    const lens = flatten(root, root.$defs!.WebcamAttributes!.properties!.intrinsic_parameters!, undefined);
    expect(lens.type).toEqual(['object']);
    expect(lens.required).toContain('width_px');
    expect(lens.properties).toHaveProperty('fx');
    expect(lens.description).toContain('Lens parameters');
  });

  it('has the parts of the alternative that the value is, and lets it become another', () => {
    const crop = flatten(root, step, { type: 'crop' });
    expect(flatten(root, crop.properties!.attributes!, undefined).properties).toHaveProperty('x_min_px');
    expect(flatten(root, crop.properties!.attributes!, undefined).properties).not.toHaveProperty('angle_degs');
    expect(flatten(root, crop.properties!.type!, 'crop').enum).toEqual(['rotate', 'resize', 'crop', 'detections', 'classifications']);
  });

  it('knows which resources an attribute names', () => {
    const { source } = root.$defs!.TransformAttributes!.properties!;
    expect(flatten(root, source!, undefined)['x-depends-on']).toBe('rdk:component:camera');
    const { camera_name } = root.$defs!.MlmodelVisionAttributes!.properties!;
    expect(flatten(root, camera_name!, undefined)['x-depends-on']).toBe('rdk:component:camera');
  });
});

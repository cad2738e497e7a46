import { describe, expect, it } from 'vitest';
import schema from '../../../../schemas/machine.schema.json';
import { propertiesOf, schemasAt, valuesOf, type Schema } from './json_schema';

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

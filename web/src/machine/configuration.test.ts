import { expect, it } from 'vitest';
import { setAttributes } from './configuration';

const TEXT = `// a machine
{
  "services": [
    {"name": "parts"},
    {
      "name": "eyes", // looks
      "attributes": {
        "mlmodel_name": "parts",
        "default_minimum_confidence": 0.5
      }
    }
  ]
}
`;

it('changes only the attributes of the service', async () => {
  const changed = await setAttributes(TEXT, 'eyes', ['default_minimum_confidence'], { label_confidences: { bolt: 0.3 } });
  expect(changed).toContain('// a machine');
  expect(changed).toContain('// looks');
  expect(changed).toContain('"mlmodel_name": "parts"');
  expect(changed).toMatch(/"label_confidences": \{\s+"bolt": 0.3\s+\}/);
  expect(changed).not.toContain('default_minimum_confidence');
});

it('says which service is missing', async () => {
  await expect(setAttributes(TEXT, 'ears', [], {})).rejects.toThrow('the configuration has no service ears');
});

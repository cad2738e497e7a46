import { describe, expect, it } from 'vitest';
import { sdkService } from '../../machine/services';
import { listMethods, listOptionalFields, makeTemplate } from './request';

const MOTOR = sdkService('rdk:component:motor')!;

describe('listMethods', () => {
  it('offers a viewer only what moves nothing', () => {
    const names = listMethods(MOTOR, 'viewer').map((each) => each.name);
    expect(names).toContain('GetPosition');
    expect(names).toContain('IsPowered');
    expect(names).not.toContain('SetPower');
    expect(names).not.toContain('DoCommand');
  });
  it('puts what only reads first', () => {
    const names = listMethods(MOTOR, 'operator').map((each) => each.name);
    expect(names.indexOf('IsPowered')).toBeLessThan(names.indexOf('GoFor'));
  });
  it('offers an operator nothing that needs an owner', () => {
    const upload = 'UploadDataFromPath';
    const methods = { upload: { ...MOTOR.methods.doCommand!, name: upload } };
    const service = { typeName: 'viam.service.datamanager.v1.DataManagerService', methods };
    expect(listMethods(service, 'operator')).toEqual([]);
    expect(listMethods(service, 'owner').map((each) => each.name)).toEqual([upload]);
  });
});

describe('makeTemplate', () => {
  it('fills in the name, and every field that is not optional', () => {
    const method = MOTOR.methods.goFor!;
    expect(makeTemplate(method.I, 'wheel')).toEqual({ name: 'wheel', rpm: 0, revolutions: 0, extra: {} });
  });
  it('is a request that the method accepts', () => {
    for (const api of ['arm', 'board', 'camera', 'pose_tracker'].map((each) => `rdk:component:${each}`))
      for (const method of Object.values(sdkService(api)!.methods))
        expect(() => method.I.fromJson(makeTemplate(method.I, 'x') as never)).not.toThrow();
  });
  it('is a request that every method of a service accepts', () => {
    for (const api of ['motion', 'mlmodel', 'vision', 'slam', 'world_state_store'].map((each) => `rdk:service:${each}`))
      for (const method of Object.values(sdkService(api)!.methods))
        expect(() => method.I.fromJson(makeTemplate(method.I, 'x') as never)).not.toThrow();
  });
  it('leaves out what is optional, and names it', () => {
    const method = sdkService('rdk:service:motion')!.methods.moveOnGlobe!;
    expect(listOptionalFields(method.I)).toContain('heading');
    expect(makeTemplate(method.I, 'x')).not.toHaveProperty('heading');
  });
});

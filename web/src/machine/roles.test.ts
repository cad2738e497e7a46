import { expect, it } from 'vitest';
import { mayCall, requiredRole } from './roles';

const MOTOR = 'viam.component.motor.v1.MotorService';
const SHELL = 'viam.service.shell.v1.ShellService';

it('knows what the machine requires', () => {
  expect(requiredRole(MOTOR, 'GetPosition')).toBe('viewer');
  expect(requiredRole(MOTOR, 'SetPower')).toBe('operator');
  expect(requiredRole(MOTOR, 'DoCommand')).toBe('operator');
  expect(requiredRole(SHELL, 'Shell')).toBe('owner');
});

it('requires an owner for a command of a shell, and for what it does not know', () => {
  expect(requiredRole(SHELL, 'DoCommand')).toBe('owner');
  expect(requiredRole(MOTOR, 'GetSomething')).toBe('owner');
});

it('requires an operator for every method of a module', () => {
  expect(requiredRole('acme.component.lamp.v1.LampService', 'GetColor')).toBe('operator');
});

it('lets a role do what lower roles may', () => {
  expect(mayCall('owner', MOTOR, 'GetPosition')).toBe(true);
  expect(mayCall('operator', SHELL, 'DoCommand')).toBe(false);
  expect(mayCall('viewer', MOTOR, 'Stop')).toBe(false);
});

/**
 * The methods that set something in motion, and so belong to the session of their client. The
 * machine has the same list, from the descriptors of the public API.
 *
 * This file is generated from the code: run `make docs`.
 */
export const MOVING_METHODS: ReadonlySet<string> = new Set([
  '/viam.component.arm.v1.ArmService/MoveThroughJointPositions',
  '/viam.component.arm.v1.ArmService/MoveThroughJointPositionsStreamed',
  '/viam.component.arm.v1.ArmService/MoveToJointPositions',
  '/viam.component.arm.v1.ArmService/MoveToPosition',
  '/viam.component.base.v1.BaseService/MoveStraight',
  '/viam.component.base.v1.BaseService/SetPower',
  '/viam.component.base.v1.BaseService/SetVelocity',
  '/viam.component.base.v1.BaseService/Spin',
  '/viam.component.button.v1.ButtonService/Push',
  '/viam.component.gantry.v1.GantryService/MoveToPosition',
  '/viam.component.gripper.v1.GripperService/GoToInputs',
  '/viam.component.gripper.v1.GripperService/Grab',
  '/viam.component.gripper.v1.GripperService/Open',
  '/viam.component.motor.v1.MotorService/GoFor',
  '/viam.component.motor.v1.MotorService/GoTo',
  '/viam.component.motor.v1.MotorService/SetPower',
  '/viam.component.motor.v1.MotorService/SetRPM',
  '/viam.component.servo.v1.ServoService/Move',
  '/viam.component.switch.v1.SwitchService/SetPosition',
  '/viam.service.motion.v1.MotionService/Move',
  '/viam.service.motion.v1.MotionService/MoveOnGlobe',
  '/viam.service.motion.v1.MotionService/MoveOnMap',
]);

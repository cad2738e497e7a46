import type { Resource } from '../machine/status';

export interface CardProps {
  readonly resource: Resource;
}

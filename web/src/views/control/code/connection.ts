/** How a program reaches the machine of this page. */
export interface Connection {
  readonly isEncrypted: boolean;
  /** The name or the number of the computer, without a port. */
  readonly hostname: string;
  /** With the port, unless it is the default one. */
  readonly address: string;
  readonly needsLogin: boolean;
}

/** The variables of the environment that have the key: programs are shared, keys are not. */
export const KEY_ID_VARIABLE = 'COGWORK_API_KEY_ID';
export const KEY_VARIABLE = 'COGWORK_API_KEY';

export function readConnection({ protocol, hostname, host }: Location, needsLogin: boolean): Connection {
  return { isEncrypted: protocol === 'https:', hostname, address: host, needsLogin };
}

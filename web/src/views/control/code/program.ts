/** Programs that use a resource as its card does, for people to copy. */

import type { Resource } from '../../../machine/status';
import { KEY_ID_VARIABLE, KEY_VARIABLE, type Connection } from './connection';
import { writePython } from './python';
import { writeTypeScript } from './typescript';

export const LANGUAGES = ['Python', 'TypeScript'] as const;
export type Language = (typeof LANGUAGES)[number];

const COMMAND = 'This sends a command, whose words its model knows:';
const EFFECTS: Readonly<Record<string, string>> = {
  'rdk:component:board': 'These read a pin and set it high:',
  'rdk:component:button': 'This presses it:',
  'rdk:component:generic': COMMAND,
  'rdk:component:switch': 'This switches it:',
  'rdk:service:generic': COMMAND,
};
const MOVES = 'This moves it:';

/** `camera`: the one that a vision service looks at; empty if there is none. */
export function writeProgram(language: Language, resource: Resource, camera: string, connection: Connection): string {
  const subject = { resource, camera, effect: EFFECTS[resource.api] ?? MOVES };
  return language === 'Python' ? writePython(subject, connection) : writeTypeScript(subject, connection);
}

/** What has to be done before the program runs. */
export function listRequirements(language: Language, connection: Connection): string[] {
  return [
    ...(language === 'Python'
      ? ['pip install viam-sdk']
      : ['npm install @viamrobotics/sdk', 'Save it as a .mjs file, and run it with Node 20 or newer.']),
    ...(connection.needsLogin ? [`Set ${KEY_ID_VARIABLE} and ${KEY_VARIABLE} to an API key of this machine.`] : []),
    ...(connection.isEncrypted ? [describeTrust(language)] : []),
  ];
}

function describeTrust(language: Language): string {
  const variable = language === 'Python' ? 'SSL_CERT_FILE' : 'NODE_EXTRA_CA_CERTS';
  return `If the machine has a certificate of your own authority, set ${variable} to the certificate of that authority.`;
}

/** What happens to what a card has started when this page is hidden, closed or lost. */

const STOPS = 'Stops when this page is hidden, closed or lost.';

const SENTENCES: Readonly<Record<string, string>> = {
  'rdk:component:arm': STOPS,
  'rdk:component:base': STOPS,
  'rdk:component:board': 'Pins and PWM stay as they are when this page is closed or lost. STOP ALL does not change them.',
  'rdk:component:button': STOPS,
  'rdk:component:gantry': STOPS,
  'rdk:component:generic': 'What a command starts may go on when this page is closed or lost.',
  'rdk:component:gripper': STOPS,
  'rdk:component:motor': STOPS,
  'rdk:component:servo': STOPS,
  'rdk:component:switch': 'Stays in its position when this page is closed or lost.',
  'rdk:service:generic': 'What a command starts may go on when this page is closed or lost.',
  'rdk:service:motion': 'A plan stops when the client that started it is lost.',
  'rdk:service:navigation': 'Goes on when this page is closed or lost. Cancel it here, or press STOP ALL.',
};

/** Returns the sentence for an API; empty if its card starts nothing. */
export function describeWhenLost(api: string): string {
  return SENTENCES[api] ?? '';
}

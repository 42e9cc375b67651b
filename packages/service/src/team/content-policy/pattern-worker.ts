/** This thread searches texts for the patterns of the rules. The service ends the thread when a search takes too long. */
import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { RE2JS } from 're2js';
import type { FromPatternThread, PatternThreadData, ToPatternThread } from './pattern-thread.ts';

function serve(port: MessagePort, { rules }: PatternThreadData): void {
  const compiled = rules.map(({ pattern, applies_to }) => ({ regex: RE2JS.compile(pattern), appliesTo: applies_to }));
  const post = (message: FromPatternThread): void => port.postMessage(message);
  port.on('message', ({ texts }: ToPatternThread) => {
    for (const [index, { regex, appliesTo }] of compiled.entries()) {
      post({ kind: 'searching', rule: index });
      if (texts.some(({ kind, text }) => appliesTo.includes(kind) && regex.test(text))) {
        post({ kind: 'found', rule: index });
        return;
      }
    }
    post({ kind: 'none' });
  });
  post({ kind: 'ready' });
}

const data = workerData as PatternThreadData | null;
if (parentPort && data) serve(parentPort, data);

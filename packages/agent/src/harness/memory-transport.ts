import type { AnyMessage, Stream } from '@agentclientprotocol/sdk';
import { storableJson } from '../reporting/wire-text.ts';
import type { HarnessTransport, MessageTap } from './acp.ts';

/** Connects an ACP agent that runs in this process: the same messages, the same taps, no second Node. */
export function memoryTransport(tap: MessageTap): { transport: HarnessTransport; agentStream: Stream } {
  const toAgent = new TransformStream<AnyMessage, AnyMessage>({
    transform(message, controller) {
      tap.line(storableJson(message));
      controller.enqueue(message);
    },
  });
  const fromAgent = new TransformStream<AnyMessage, AnyMessage>({
    async transform(message, controller) {
      await tap.ready();
      tap.line(storableJson(message));
      if (!tap.fromHarness(message)) controller.enqueue(message);
    },
  });
  return {
    transport: {
      readable: fromAgent.readable,
      writable: toAgent.writable,
      exited: new Promise(() => {}),
      kill: async () => {},
    },
    agentStream: { readable: toAgent.readable, writable: fromAgent.writable },
  };
}

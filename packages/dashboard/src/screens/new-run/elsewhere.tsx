import { useState } from 'react';
import { CommandBlock } from '../../parts/copy.tsx';
import { asCommand, asCurl, type Draft, type Sent } from './request.ts';

/** Shows the request of the form as a command for a shell. */
export function Elsewhere({ draft, request, isRerun }: { draft: Draft; request: Sent; isRerun: boolean }) {
  const [wording, setWording] = useState<'curl' | 'command'>('curl');
  return (
    <section className="stack s2" aria-label="The same request elsewhere">
      <div className="seg sm start">
        <button
          type="button"
          className="btn ghost sm"
          aria-pressed={wording === 'curl'}
          onClick={() => setWording('curl')}
        >
          As curl
        </button>
        <button
          type="button"
          className="btn ghost sm"
          aria-pressed={wording === 'command'}
          onClick={() => setWording('command')}
        >
          As command
        </button>
      </div>
      <CommandBlock
        command={wording === 'curl' ? asCurl(request, location.origin) : asCommand(draft, request, isRerun)}
      />
    </section>
  );
}

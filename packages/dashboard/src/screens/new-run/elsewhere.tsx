import { useState } from 'react';
import { Segments, Stack } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { asCommand, asCurl, type Draft, type Sent } from './request.ts';

/** Shows the request of the form as a command for a shell. */
export function Elsewhere({ draft, request, isRerun }: { draft: Draft; request: Sent; isRerun: boolean }) {
  const [wording, setWording] = useState<'curl' | 'command'>('curl');
  return (
    <Stack as="section" gap={2} aria-label="The same request elsewhere">
      <Segments as="div" start>
        <Button kind="ghost" small aria-pressed={wording === 'curl'} onClick={() => setWording('curl')}>
          As curl
        </Button>
        <Button kind="ghost" small aria-pressed={wording === 'command'} onClick={() => setWording('command')}>
          As command
        </Button>
      </Segments>
      <CommandBlock
        command={wording === 'curl' ? asCurl(request, location.origin) : asCommand(draft, request, isRerun)}
      />
    </Stack>
  );
}

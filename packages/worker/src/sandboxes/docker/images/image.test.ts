import { expect, test } from 'vitest';
import { volumesFault } from './image.ts';

test.each([
  [['/data', '/var/lib/postgresql/data', '/workspace', '/home'], undefined],
  [['/opt/runyard/agent'], 'where the sandbox has files'],
  [['/proc/sys'], 'where the sandbox has files'],
  [['/a/../opt/runyard/agent'], 'where the sandbox has files'],
  [['relative'], 'where the sandbox has files'],
  [Array.from({ length: 40 }, (_, n) => `/v${n}`), '40 volumes'],
])('volumesFault accepts or refuses the volumes %j', (volumes, fault) => {
  if (fault === undefined) expect(volumesFault(volumes)).toBeUndefined();
  else expect(volumesFault(volumes)).toContain(fault);
});

import { expect, test } from 'vitest';
import { uploadProgress } from './upload-file.ts';

const mb = 1024 * 1024;

test('a long upload tells a line at most every ten seconds, and only if much more was sent', () => {
  let clock = 0;
  const lines: string[] = [];
  const sent = uploadProgress(
    1000 * mb,
    (line) => lines.push(line),
    () => clock,
  );
  const send = (seconds: number, megabytes: number) => {
    clock = seconds * 1000;
    sent(megabytes * mb);
  };
  send(9, 500);
  expect(lines).toEqual([]);
  send(10, 510);
  send(15, 800);
  send(21, 550);
  expect(lines).toEqual(['sent 510 MB of 1000 MB']);
  send(22, 900);
  // The upload was cut and begins again.
  send(40, 100);
  expect(lines.slice(1)).toEqual(['sent 900 MB of 1000 MB', 'sent 100 MB of 1000 MB']);
});

import { describe, expect, it } from 'vitest';
import { watchReport, writeReport } from './report-status.ts';

const refused = [
  ['refs/heads/a', 'no'],
  ['refs/heads/b', 'not either'],
] as const;

describe('the report on a push', () => {
  it.each([
    ['a wide band', ['report-status', 'side-band-64k']],
    ['a narrow band', ['report-status-v2', 'side-band']],
    ['no band', ['report-status']],
  ])('is read correctly with %s, even if the answer arrives in pieces of any size', (_name, capabilities) => {
    const written = writeReport(capabilities, refused) ?? Buffer.alloc(0);
    for (const size of [1, 2, 3, 7, 1000]) {
      const watched = watchReport(capabilities);
      for (let at = 0; at < written.length; at += size) watched.add(written.subarray(at, at + size));
      expect(watched.result()).toEqual(new Map(refused));
    }
  });

  it('is split into several packets for a client that accepts only small packets', () => {
    const many = Array.from({ length: 20 }, (_, index) => [`refs/heads/${index}`, 'x'.repeat(100)] as const);
    const watched = watchReport(['report-status', 'side-band']);
    watched.add(writeReport(['report-status', 'side-band'], many) ?? Buffer.alloc(0));
    expect(watched.result()).toEqual(new Map(many));
  });

  it('is not written for a client that requested no report', () => {
    expect(writeReport(['side-band-64k'], refused)).toBeUndefined();
  });

  it('is found between messages that the code host sends for people', () => {
    const pkt = (text: string) => `${(text.length + 4).toString(16).padStart(4, '0')}${text}`;
    const report = `${pkt('unpack ok\n')}${pkt('ok refs/heads/a\n')}${pkt('ng refs/heads/b pre-receive hook declined\n')}0000`;
    const watched = watchReport(['report-status', 'side-band-64k']);
    watched.add(Buffer.from(`${pkt('\x02remote: hello')}${pkt(`\x01${report}`)}0000`));
    expect(watched.result()).toEqual(
      new Map([
        ['refs/heads/a', null],
        ['refs/heads/b', 'pre-receive hook declined'],
      ]),
    );
  });

  it.each(['', '0000', 'zzzz', '000bunpack'])('is absent from %s', (answer) => {
    const watched = watchReport(['report-status']);
    watched.add(Buffer.from(answer));
    expect(watched.result()).toBeNull();
  });

  it('is read only from the first bytes of an answer that does not end', () => {
    const watched = watchReport(['report-status']);
    for (let count = 0; count < 100; count += 1) watched.add(Buffer.alloc(1_000_000));
    expect(watched.result()).toBeNull();
  });
});

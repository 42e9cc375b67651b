import { expect, test } from 'vitest';
import { argumentsOf, imageServicesOf } from './services.ts';

test.each<[string, string[] | undefined]>([
  ['redis-server --save "" --port 6379', ['redis-server', '--save', '', '--port', '6379']],
  [` a\\ b "c\\"d\\e" 'e "f'g\n`, ['a b', 'c"d\\e', 'e "fg']],
  ['$(id) ; `x` $HOME *', ['$(id)', ';', '`x`', '$HOME', '*']],
  ['"a\nb" \\\n', ['a\nb', '\n']],
  ['a "b', undefined],
  ["a 'b", undefined],
  ['a \\', undefined],
])('argumentsOf splits %j', (command, words) => {
  expect(argumentsOf(command)).toEqual(words);
});

test('imageServicesOf returns the services with an image', () => {
  const services = [
    { name: 'a', command: 'run a', port: 1 },
    { name: 'b', image: ' redis:8 ', command: "redis-server --save ''", port: 2, env: { A: 'b' } },
    { name: 'c', image: 'redis:8', ready: 'true' },
    { name: 'd', image: null, command: 'run d', ready: 'true' },
  ];
  expect(imageServicesOf({ services })).toEqual([
    { name: 'b', image: 'redis:8', args: ['redis-server', '--save', ''], port: 2, env: { A: 'b' } },
    { name: 'c', image: 'redis:8' },
  ]);
  expect(imageServicesOf({ services: 'redis' })).toEqual([]);
});

/** True if `bin/test-long` runs the tests. Then a test file runs all of its cases; with `bin/test`, it runs only some. */
export const isLong = process.env.TEST_LONG === '1';

/**
 * The tags of tests that `bin/test` leaves to another program, which `bin/test` names. `skipIf` and `runIf` of a test replace the `skip` of its tag,
 * so their condition must name `isLong`.
 */
export const leftTags = [
  { name: 'long', description: 'Tests that only bin/test-long runs', skip: !isLong },
  { name: 'compiled', description: 'Tests that need programs which bin/test-long or bin/test-kubernetes compile' },
];

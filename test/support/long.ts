/** True if `bin/test-long` runs the tests. Then a test file runs all of its cases; with `bin/test`, it runs only some. */
export const isLong = process.env.TEST_LONG === '1';

/** Whether `bin/test-long` runs the tests: then a file shows all cases of which `bin/test` shows some. */
export const isLong = process.env.TEST_LONG === '1';

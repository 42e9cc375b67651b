import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/checks/longest-first.ts';
import { leftTags } from './test/support/long.ts';

export default defineConfig({
  test: {
    globalSetup: ['test/support/temporary-folder.ts', 'test/support/database.ts'],
    setupFiles: ['test/support/record-answers.ts'],
    // Processes, not threads, because tests start sandboxes and servers that end with the thread that started them.
    pool: 'forks',
    // Test files of a process share its modules: loading them once per process halves the processor time of small tests.
    isolate: false,
    // Each service that a test starts becomes garbage soon: with V8's own size, collecting it takes a quarter of the processor time.
    execArgv: ['--max-semi-space-size=32'],
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    // For two busy cores: a test that hangs fails later, and a slow one passes.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    tags: leftTags,
    projects: [
      {
        extends: true,
        test: {
          name: 'node',
          include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
          exclude: ['packages/dashboard/**', '**/node_modules/**'],
          // Node runs the sources as it does in production. Vite's module runner takes a tenth more processor time.
          experimental: { viteModuleRunner: false, nodeLoader: false },
        },
      },
      {
        // These tests import JSX and style sheets, which Node cannot run.
        extends: true,
        test: { name: 'dashboard', include: ['packages/dashboard/src/**/*.test.ts'] },
      },
    ],
  },
});

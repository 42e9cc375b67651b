import { defineConfig } from 'vite';

export default defineConfig({
  root: import.meta.dirname,
  build: {
    target: 'es2023',
    // The service serves these files below /app (packages/service/src/edges/http/pages/dashboard.ts).
    assetsDir: 'app',
    // Images and scripts are never inlined, because the content security policy of the page forbids inline content.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    manifest: true,
    rolldownOptions: {
      // The first screen names all files, so each character of a hash counts about a hundred times.
      output: {
        entryFileNames: 'app/[name]-[hash:7].js',
        chunkFileNames: 'app/[name]-[hash:7].js',
        assetFileNames: 'app/[name]-[hash:7][extname]',
      },
      // React's libraries mark modules for servers. This page has no server part.
      onwarn: (warning, warn) => warning.code === 'MODULE_LEVEL_DIRECTIVE' || warn(warning),
    },
  },
  worker: { format: 'es' },
});

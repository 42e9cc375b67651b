import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';
import { icons } from './src/parts/icons.ts';

/** Returns a class name of four characters. Names of files and classes would be in the scripts of the first screen. */
const shortName = (name: string, file: string): string =>
  `_${createHash('sha256')
    .update(`${path.relative(import.meta.dirname, file)} ${name}`)
    .digest('base64url')
    .replaceAll(/\W/g, '')
    .slice(0, 4)}`;

/** Puts the drawings of the icons into the frame. */
const drawIcons: Plugin = {
  name: 'icons',
  transformIndexHtml(html) {
    const file = fileURLToPath(import.meta.resolve('@iconify-json/lucide/icons.json'));
    const drawings: { icons: Record<string, { body: string }> } = JSON.parse(readFileSync(file, 'utf8'));
    const symbols = Object.entries(icons).map(([name, source]) => {
      const drawing = drawings.icons[source];
      if (drawing === undefined) throw new Error(`lucide.dev has no icon ${source}`);
      return `<symbol id="i-${name}" viewBox="0 0 24 24">${drawing.body}</symbol>`;
    });
    return html.replace('<!-- icons -->', symbols.join('\n'));
  },
};

/** Packages and parts that the first screen needs. The style sheet with the order of the layers must be before all others. */
const libraries = /node_modules\/(react|react-dom|scheduler|use-sync-external-store|@tanstack)\//;
const firstParts =
  /\/src\/(styles\/|(frame\/(page|menu-button)|parts\/(attempt|badge|blocks|box|button|card|chart|code|controls|copy|empty|facts|format|icon|input|keys|layout|live|look|menu|note|problem|role-button|soon|table|time|toast))\.)/;

export default defineConfig({
  root: import.meta.dirname,
  plugins: [drawIcons],
  css: { modules: { generateScopedName: shortName } },
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
        // One file for the parts of all screens: forty small files are compressed worse.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            { name: 'libraries', test: libraries, priority: 2 },
            { name: 'parts', test: firstParts, priority: 1 },
          ],
        },
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

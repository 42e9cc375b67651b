/**
 * Writes the npm package: our code and its libraries as a few JavaScript files, the agent and the supervisor as the bundles that a
 * worker would otherwise make, the built dashboard, the migrations and a start script. Node strips no types below `node_modules`, so the
 * package has no TypeScript. Node itself and PostgreSQL are the only packages that npm installs with it.
 */
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build, type Plugin } from 'esbuild';
import { bundleProgram, prebuiltFolder, writeBundle } from '../../packages/worker/src/runtime/bundle.ts';
import { packageStart } from './package-start.ts';

/** Programs and threads: each becomes a file of its own, at the place of its source. */
const programs = [
  'packages/cli/src/main.ts',
  'packages/cli/src/supervise/background-main.ts',
  'packages/service/src/main.ts',
  'packages/service/src/team/content-policy/pattern-worker.ts',
  'packages/service/src/runs/results/schema-worker.ts',
  'packages/service/src/triggers/definitions/check-files-worker.ts',
  'packages/worker/src/main.ts',
];
/** Programs that the worker bundles at its start when it runs from the sources. */
const bundled = ['packages/agent/src/main.ts', 'packages/worker/src/supervisor-process/main.ts'];
/** Files that the programs read from the place of a source. */
const data = [
  'LICENSE',
  'README.md',
  'packages/dashboard/dist',
  'packages/service/src/edges/http/pages/assets',
  'packages/service/src/platform/store/migrations',
  'packages/service/src/team/models/catalogue.json',
];

/**
 * Lets the code find files as it does in the checkout, although a bundle has other files: the place of a source is computed from the
 * folder of the package, and a program is started from its JavaScript.
 */
const atTheirPlace = (root: string): Plugin => ({
  name: 'at their place',
  setup(made) {
    made.onLoad({ filter: /\/packages\/[^/]+\/src\/.*\.ts$/ }, ({ path: file }) => {
      const place = path.relative(root, file).replace(/\.ts$/, '.js');
      const url = `new URL(${JSON.stringify(place)}, import.meta.resolve('runyard/package.json'))`;
      const contents = readFileSync(file, 'utf8')
        .replaceAll(/\.ts(['"`])/g, '.js$1')
        // Messages name the command as the user of the package types it.
        .replaceAll('bin/runyard', 'runyard')
        .replaceAll("createRequire(import.meta.url)('string-width')", "require('string-width')")
        .replaceAll('import.meta.url', `${url}.href`)
        .replaceAll('import.meta.dirname', `decodeURIComponent(new URL('.', ${url}).pathname).slice(0, -1)`);
      return { contents, loader: 'ts' };
    });
  },
});

/** Writes `runyard-VERSION.tgz` into `folder`. `sbom`: the bill of materials that the package contains. Returns the path of the file. */
export async function writeNpmPackage(root: string, folder: string, sbom: string): Promise<string> {
  const manifest = (place: string) => JSON.parse(readFileSync(path.join(root, place, 'package.json'), 'utf8'));
  const content = mkdtempSync(path.join(tmpdir(), 'runyard-package-'));
  try {
    await build({
      absWorkingDir: root,
      entryPoints: programs,
      outbase: root,
      outdir: content,
      chunkNames: 'lib/[name]-[hash]',
      bundle: true,
      splitting: true,
      format: 'esm',
      platform: 'node',
      target: 'node24',
      minifyWhitespace: true,
      minifySyntax: true,
      legalComments: 'none',
      // CommonJS libraries call `require` for the modules of Node.
      banner: { js: "import{createRequire as requireOf}from'node:module';const require=requireOf(import.meta.url);" },
      external: ['esbuild', 'pg-native'],
      plugins: [atTheirPlace(root)],
      logLevel: 'error',
    });
    for (const entry of bundled) {
      const made = prebuiltFolder(path.join(content, entry));
      await writeBundle(await bundleProgram(path.join(root, entry)), made);
    }
    for (const name of data)
      cpSync(path.join(root, name), path.join(content, name), {
        recursive: true,
        filter: (file) => !/\.(?:ts|md)$/.test(file) || file.endsWith('README.md'),
      });
    mkdirSync(path.join(content, 'bin'));
    writeFileSync(path.join(content, 'bin/runyard'), packageStart);
    chmodSync(path.join(content, 'bin/runyard'), 0o755);
    writeFileSync(path.join(content, 'sbom.cdx.json'), sbom);
    const { name, version, license, description, engines } = manifest('.');
    const own = {
      ...{ name, version, license, description, type: 'module', engines, os: ['linux'] },
      bin: { runyard: 'bin/runyard' },
      exports: { './package.json': './package.json' },
      // Node and PostgreSQL: npm installs those for the machine.
      optionalDependencies: manifest('packages/cli').optionalDependencies,
    };
    writeFileSync(path.join(content, 'package.json'), `${JSON.stringify(own, null, 2)}\n`);
    const before = new Set(readdirSync(folder));
    execFileSync('npm', ['pack', '--silent', '--pack-destination', path.resolve(folder)], { cwd: content });
    const file = readdirSync(folder).find((each) => !before.has(each));
    if (file === undefined) throw new Error('npm pack wrote no file');
    return path.join(folder, file);
  } finally {
    rmSync(content, { recursive: true, force: true });
  }
}

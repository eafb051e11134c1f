/** The bundler turns an import of a style sheet into a file. */
declare module "*.css";

"""`python -m tools.spark_jars`: fetch the jars, print where they are."""

from tools.spark_jars import fetch

if __name__ == "__main__":
    print(fetch()[0].parent)
